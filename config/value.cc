// SPDX-License-Identifier: Apache-2.0
#include "config/value.h"

#include <algorithm>

#include "config/nearest.h"
#include "config/scalar.h"
#include "config/text_check.h"

namespace pushrod::config {

namespace {

struct Scalar {
  std::string text;
  std::string shown;  ///< as written, in quotes: what came from the environment is not repeated
  bool plain = true;  ///< written without quotes, or put together from the environment
  bool replaced = false;
};

std::optional<Scalar> readScalar(Reader& reader,
                                 const std::string& path,
                                 const TreeNode& node,
                                 const std::string& wanted) {
  if (refuseNull(reader, path, node)) {
    return std::nullopt;
  }
  if (node.kind != TreeNode::Kind::kScalar) {
    reader.faults.add(node.where, path, "must be " + wanted + ", not " + kindText(node));
    return std::nullopt;
  }
  auto replaced = replaceVariables(node.text, reader.environment);
  if (!replaced) {
    reader.faults.add(node.where, path, replaced.status().message());
    return std::nullopt;
  }
  return Scalar{.text = std::move(replaced->text),
                .shown = quoted(node.text),
                .plain = !node.quoted || replaced->changed,
                .replaced = replaced->changed};
}

/// The reason of a failed conversion without the value, when that came from the environment.
std::string reasonText(const Scalar& scalar, const Status& failure, const std::string& wanted) {
  return scalar.replaced ? scalar.shown + " stands for a value that is not " + wanted
                         : failure.message();
}

template <typename T, typename Format>
bool inRange(Reader& reader,
             const std::string& path,
             const TreeNode& node,
             T value,
             T smallest,
             T largest,
             Format format) {
  if (value >= smallest && value <= largest) {
    return true;
  }
  reader.faults.add(node.where,
                    path,
                    format(value) + " is out of range; give a value from " + format(smallest) +
                        " to " + format(largest));
  return false;
}

}  // namespace

std::string kindText(const TreeNode& node) {
  switch (node.kind) {
    case TreeNode::Kind::kNull:
      return "no value";
    case TreeNode::Kind::kScalar:
      return "the single value " + quoted(node.text);
    case TreeNode::Kind::kSequence:
      return "a list";
    case TreeNode::Kind::kMap:
      return "a section";
  }
  return "no value";
}

bool refuseNull(Reader& reader, const std::string& path, const TreeNode& node) {
  if (node.kind != TreeNode::Kind::kNull) {
    return false;
  }
  reader.faults.add(
      node.where, path, "has no value; give one, or remove the key to use its default");
  return true;
}

std::optional<bool> readSwitch(Reader& reader, const std::string& path, const TreeNode& node) {
  const auto scalar = readScalar(reader, path, node, "true or false");
  if (!scalar) {
    return std::nullopt;
  }
  if (scalar->plain && (scalar->text == "true" || scalar->text == "false")) {
    return scalar->text == "true";
  }
  reader.faults.add(node.where,
                    path,
                    scalar->shown + " is not a switch; write true or false" +
                        (scalar->plain ? "" : ", without quotes"));
  return std::nullopt;
}

std::optional<std::int64_t> readInteger(Reader& reader,
                                        const std::string& path,
                                        const TreeNode& node,
                                        std::int64_t smallest,
                                        std::int64_t largest) {
  const auto scalar = readScalar(reader, path, node, "a whole number");
  if (!scalar) {
    return std::nullopt;
  }
  const std::string range =
      "; give one from " + std::to_string(smallest) + " to " + std::to_string(largest);
  if (!scalar->plain) {
    reader.faults.add(node.where,
                      path,
                      scalar->shown + " is a text, not a whole number; write it without quotes");
    return std::nullopt;
  }
  const auto value = parseInteger(scalar->text);
  if (!value) {
    reader.faults.add(
        node.where, path, reasonText(*scalar, value.status(), "a whole number") + range);
    return std::nullopt;
  }
  const auto format = [](std::int64_t number) { return std::to_string(number); };
  return inRange(reader, path, node, *value, smallest, largest, format)
             ? std::optional<std::int64_t>(*value)
             : std::nullopt;
}

std::optional<Duration> readDuration(Reader& reader,
                                     const std::string& path,
                                     const TreeNode& node,
                                     Duration smallest,
                                     Duration largest) {
  const auto scalar = readScalar(reader, path, node, "a duration such as 30s");
  if (!scalar) {
    return std::nullopt;
  }
  const auto value = parseDuration(scalar->text);
  if (!value) {
    reader.faults.add(node.where, path, reasonText(*scalar, value.status(), "a duration"));
    return std::nullopt;
  }
  return inRange(reader, path, node, *value, smallest, largest, formatDuration)
             ? std::optional<Duration>(*value)
             : std::nullopt;
}

std::optional<std::uint64_t> readSize(Reader& reader,
                                      const std::string& path,
                                      const TreeNode& node,
                                      std::uint64_t smallest,
                                      std::uint64_t largest) {
  const auto scalar = readScalar(reader, path, node, "a size such as 64MiB");
  if (!scalar) {
    return std::nullopt;
  }
  const auto value = parseSize(scalar->text);
  if (!value) {
    reader.faults.add(node.where, path, reasonText(*scalar, value.status(), "a size"));
    return std::nullopt;
  }
  return inRange(reader, path, node, *value, smallest, largest, formatSize)
             ? std::optional<std::uint64_t>(*value)
             : std::nullopt;
}

std::optional<Text> readText(Reader& reader, const std::string& path, const TreeNode& node) {
  auto scalar = readScalar(reader, path, node, "a text");
  if (!scalar) {
    return std::nullopt;
  }
  if (!node.quoted && (scalar->text == "true" || scalar->text == "false")) {
    reader.faults.add(node.where,
                      path,
                      scalar->shown +
                          " is a switch, but this key takes a text; put it in quotes if "
                          "it is meant as one");
    return std::nullopt;
  }
  if (!isPrintable(scalar->text)) {
    reader.faults.add(
        node.where,
        path,
        scalar->shown + " has a line end or another control character, or is not UTF-8");
    return std::nullopt;
  }
  const bool mayHoldPassword = scalar->shown.find('@') != std::string::npos;
  return Text{.value = std::move(scalar->text),
              .shown = mayHoldPassword ? "the value" : std::move(scalar->shown)};
}

std::optional<std::size_t> readChoice(Reader& reader,
                                      const std::string& path,
                                      const TreeNode& node,
                                      const std::vector<std::string>& names) {
  const auto scalar = readScalar(reader, path, node, "one of its choices");
  if (!scalar) {
    return std::nullopt;
  }
  const auto found = std::find(names.begin(), names.end(), scalar->text);
  if (found != names.end()) {
    return static_cast<std::size_t>(found - names.begin());
  }
  std::string choices;
  std::string nearest;
  std::size_t smallest = 3;  // further away is no slip of the pen
  for (const std::string& name : names) {
    choices += (choices.empty() ? "" : ", ") + name;
    const std::size_t distance =
        scalar->text.size() < 64 ? editDistance(scalar->text, name) : scalar->text.size();
    if (distance < smallest) {
      smallest = distance;
      nearest = "; did you mean " + name + "?";
    }
  }
  reader.faults.add(node.where, path, scalar->shown + " is not one of " + choices + nearest);
  return std::nullopt;
}

}  // namespace pushrod::config
