// SPDX-License-Identifier: Apache-2.0
#include "config/document.h"

#include <vector>

#include <pushrod/config.h>

#include "config/key_table.h"

namespace pushrod::config {

namespace {

constexpr const char* kHead = R"(# Configuration

<!-- Generated from the key table in config/ by build/bin/pushrod_config_document; a test compares the two. -->

One YAML file, read once at start. `pushrod config check FILE` prints every fault of a file at once, and with
`--effective` the whole configuration as it will be used.

## Rules

- An unknown key, a key given twice, a missing value, a wrong type and a value out of range are refused, each as
  `FILE:LINE:COLUMN: KEY: what is wrong`, with the nearest known key and where it belongs. A key given twice is
  reported at its second place. All faults of a file are reported in one run.
- A duration is a whole number with `ms`, `s`, `m` or `h`; a size is one with `B`, `KiB`, `MiB`, `GiB` or `TiB`. A bare
  number is refused for both.
- Only `true` and `false` are switches. Numbers are decimal, without quotes and leading zeros.
- `${NAME}` in a value is replaced from the environment; a name that is not set is refused. `$${` stands for a plain
  `${`. Keys are never replaced.
- Secrets are given by the name of an environment variable, and never printed.
- A file is UTF-8, at most 1 MiB, one document, at most 16 levels deep, without aliases, merge keys and tags.
- Limits that cannot work together are refused when both are written: no limit of one step may be longer than
  `timeouts.push`. A longer default is brought down to `timeouts.push`. Other doubtful pairs are warnings of
  `pushrod config check`.
- Ranks compare their configurations before the first push. Keys marked "may differ" in the last column are left out.

## Keys

)";

constexpr const char* kFoot = R"(
## In this version

These keys are read and checked, but other values than the one given are refused at start as "not in this build":
`transport.kind` and an engine's `transport` (`tcp`), `transport.group` (`shared`), `transport.owners` (`false` but over `tcp`),
`transport.load_plan` (`false`). `transport.kind` has the default `nccl`, so set it to `tcp`.

## Example

```yaml
job: qwen3-rl
engines:
  list:
    - url: http://10.0.0.11:8000
      name: rollout-0
      expect: {model: Qwen/Qwen3-1.7B, world_size: 4}
    - url: http://10.0.0.12:8000
      name: rollout-1
  token_env: VLLM_API_KEY
transport:
  kind: tcp
  buffer: 256MiB
timeouts:
  push: 30m
```
)";

/// Text for a table's cell.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '|' ? "\\|" : std::string(1, c);
  }
  return safe;
}

template <typename Owner>
std::string table(const std::vector<Key<Owner>>& keys, const std::string& prefix) {
  std::string text = "| key | values | default | meaning | ranks |\n|---|---|---|---|---|\n";
  const Owner defaults;
  for (const Key<Owner>& key : keys) {
    const std::string value = key.write(defaults, 0);
    text += "| `" + prefix + key.path + "` | " + cell(key.values) + " | " +
            (value.empty() ? "" : "`" + cell(value) + "`") + " | " + cell(key.meaning) + " | " +
            (key.ranks == Ranks::kMustAgree ? "alike" : "may differ") + " |\n";
  }
  return text;
}

}  // namespace

std::string configurationDocument() {
  return kHead + table(configKeys(), "") +
         "\n### One entry of `engines.list`\n\nRank 0 alone reads "
         "it. Names and addresses must not repeat.\n\n" +
         table(engineKeys(), "") + kFoot;
}

}  // namespace pushrod::config
