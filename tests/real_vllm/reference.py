# SPDX-License-Identifier: Apache-2.0
"""What checkpoints generate, by transformers: run with the environment's Python.

    reference.py PROMPTS FOLDER...

PROMPTS is a JSON list of lists of token ids. Prints one line of JSON per folder: the greedy
continuation of each prompt.
"""

import json
import sys

import torch
import transformers

LENGTH = 12


def continuation(model, prompt):
    tokens = list(prompt)
    for _ in range(LENGTH):
        logits = model(torch.tensor([tokens])).logits[0, -1]
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt):]


def main(prompts, folders):
    for folder in folders:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).to(torch.float32)
        model.eval()
        with torch.no_grad():
            print(json.dumps([continuation(model, prompt) for prompt in prompts]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
