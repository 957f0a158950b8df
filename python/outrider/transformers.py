# SPDX-License-Identifier: Apache-2.0
"""For users of Hugging Face transformers: its models, and its `generate`.

    model = outrider.from_transformers(hf_model, tokenizer)
    generator = outrider.TransformersGenerator(outrider.Generator(model, drafter="suffix"))
    ids = generator.generate(**tokenizer(prompts, return_tensors="pt", padding=True), max_new_tokens=64)

This module imports neither transformers nor torch: the arguments come from them.
"""

from outrider._transformers_generator import GenerateOutput, TransformersGenerator
from outrider._transformers_model import from_transformers

__all__ = ["GenerateOutput", "TransformersGenerator", "from_transformers"]
