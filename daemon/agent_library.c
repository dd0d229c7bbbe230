/* The agent's library; see agent_library.h. */
#include "agent_library.h"

#ifdef AGENT_LIBRARY

__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"agent_library_begin:\n"
	".incbin \"" AGENT_LIBRARY "\"\n"
	"agent_library_end:\n"
	".popsection\n");

extern const char agent_library_begin[], agent_library_end[];

const void *agent_library(size_t *ret_size)
{
	*ret_size = (size_t)(agent_library_end - agent_library_begin);
	return agent_library_begin;
}

#else

const void *agent_library(size_t *ret_size)
{
	*ret_size = 0;
	return "";
}

#endif
