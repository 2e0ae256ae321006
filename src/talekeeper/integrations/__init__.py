"""Adapters to frameworks, one module each. None is imported by the rest of the library; each needs the extra of its name.

langchain       any LangChain chat model as a summarizer
penguiflow      a memory for its planner
pydantic_ai     any pydantic-ai model as a summarizer, by its provider string
"""
