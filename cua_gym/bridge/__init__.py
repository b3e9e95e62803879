"""Doors for agents that live outside: MCP servers, tokens, and what they show."""
