# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face transformers in Outrider, and the interface of their `generate`.

    model = outrider.from_transformers(hf_model, tokenizer)
    generator = outrider.TransformersGenerator(outrider.Generator(model, drafter="suffix"))
    ids = generator.generate(**tokenizer(prompts, return_tensors="pt", padding=True), max_new_tokens=64)

Importing this module imports neither transformers nor torch: callers pass objects of theirs.
"""

from outrider._transformers_generator import GenerateOutput, TransformersGenerator
from outrider._transformers_model import from_transformers

__all__ = ["GenerateOutput", "TransformersGenerator", "from_transformers"]
