/* Selector lists; see selector.h. */
#include "model/selector.h"

#include <stdlib.h>

void selector_done(struct selector *s)
{
	free(s->exe);
	free(s->command);
	free(s->user);
	free(s->unit);
	free(s->container);
	free(s->netns);
	*s = (struct selector){0};
}

void selector_list_done(struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		selector_done(&list->items[i]);
	free(list->items);
	*list = (struct selector_list){0};
}
