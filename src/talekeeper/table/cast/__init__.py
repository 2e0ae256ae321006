"""Those who speak with a language model: DM, player characters, keeper, narrator, epilogue; and the summarizer.

    models      the port: chat models that stream, found by name        hosted    models behind an API
    local       GGUF files in this process                              shelf     small models that the registry carries
    prompts     what each speaker is asked, from its `.md` file         speech    what of an answer may be heard
    brain       `ModelBrain`: models as a `Brain`, with a fallback      config    `talekeeper.toml`

Importing this needs no extra; what a model needs is said when the model is asked for.
"""

from talekeeper.table.cast.brain import Mishap, ModelBrain
from talekeeper.table.cast.config import Config, load
from talekeeper.table.cast.models import Model, Patience, Request, chat, find

__all__ = ["Config", "Mishap", "Model", "ModelBrain", "Patience", "Request", "chat", "find", "load"]
