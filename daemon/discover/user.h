/*
 * Names of users, from the host's /etc/passwd alone: asking the name service could block the daemon
 * for as long as somebody's directory server is away. Used by look.c.
 */
#pragma once

#include <stdint.h>

#define USER_NAME_MAX 64

/* The name, else the number as text. */
void user_name(uint32_t uid, char ret_name[USER_NAME_MAX]);
