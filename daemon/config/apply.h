/*
 * From a tree of nodes to struct config, by the table of keys. Called by config.c, for the defaults
 * and for a file.
 */
#pragma once

#include "config/keys.h"
#include "config/node.h"

/* Applies a whole document. Returns 0, CONFIG_INVALID with the problem reported, or -ENOMEM. */
int apply_document(const struct node *root, const struct problem *problem, struct config *config);

/* Applies one value to a key of KEY_SCOPE_FILE that is no section. Returns as above. */
int apply_value(const struct key *key, const struct node *value, const struct problem *problem,
		struct config *config);

/* Frees the array and what its items own. */
void apply_services_free(struct config_service *services, size_t n);
