"""The faces of memory: agents' buffers, scoped memories, session memory, moments, facts. Each is thin; the story beneath is one."""
