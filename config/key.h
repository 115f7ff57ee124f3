// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/address.h"
#include "config/scalar.h"
#include "config/value.h"

namespace pushrod::config {

/// Whether all ranks must have the same value (ruling P11).
enum class Ranks { kMustAgree, kMayDiffer };

/// One key of the YAML: what reads it, writes it and documents it. `Owner` is the struct that the
/// path is relative to.
template <typename Owner>
struct Key {
  std::string path;     ///< "transport.buffer"
  std::string values;   ///< what may stand there, for people
  std::string meaning;  ///< one line, for the document
  Ranks ranks = Ranks::kMustAgree;
  /// Takes the value over, or adds faults. Returns whether it was taken.
  std::function<bool(Owner&, const TreeNode&, Reader&, const std::string& path)> read;
  /// The value in YAML, to stand after "key: "; empty when the key is to be left out. A block (the
  /// engine list) begins with a line end and is indented by `indent`.
  std::function<std::string(const Owner&, std::size_t indent)> write;
};

template <typename Enum>
struct Choice {
  Enum value;
  std::string name;
};

/// What every builder below takes; `at` maps an owner to its member.
struct KeyText {
  std::string path;
  std::string meaning;
  Ranks ranks = Ranks::kMustAgree;
};

template <typename Owner, typename Member>
Key<Owner> switchKey(const KeyText& text, Member at) {
  return {.path = text.path,
          .values = "`true` or `false`",
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [at](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto value = readSwitch(reader, path, node);
                if (value) {
                  at(owner) = *value;
                }
                return value.has_value();
              },
          .write = [at](const Owner& owner, std::size_t) -> std::string {
            return at(owner) ? "true" : "false";
          }};
}

/// A member of type int or std::optional<int>.
template <typename Owner, typename Member>
Key<Owner> integerKey(const KeyText& text, int smallest, int largest, Member at) {
  return {.path = text.path,
          .values = "whole number, " + std::to_string(smallest) + " to " + std::to_string(largest),
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [=](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto value = readInteger(reader, path, node, smallest, largest);
                if (value) {
                  at(owner) = static_cast<int>(*value);
                }
                return value.has_value();
              },
          .write = [at](const Owner& owner, std::size_t) -> std::string {
            const std::optional<int> value = at(owner);
            return value ? std::to_string(*value) : std::string();
          }};
}

template <typename Owner, typename Member>
Key<Owner> durationKey(const KeyText& text, Duration smallest, Duration largest, Member at) {
  return {.path = text.path,
          .values = "duration, " + formatDuration(smallest) + " to " + formatDuration(largest),
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [=](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto value = readDuration(reader, path, node, smallest, largest);
                if (value) {
                  at(owner) = *value;
                }
                return value.has_value();
              },
          .write = [at](const Owner& owner, std::size_t) { return formatDuration(at(owner)); }};
}

template <typename Owner, typename Member>
Key<Owner> sizeKey(const KeyText& text, std::uint64_t smallest, std::uint64_t largest, Member at) {
  return {.path = text.path,
          .values = "size, " + formatSize(smallest) + " to " + formatSize(largest),
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [=](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto value = readSize(reader, path, node, smallest, largest);
                if (value) {
                  at(owner) = *value;
                }
                return value.has_value();
              },
          .write = [at](const Owner& owner, std::size_t) { return formatSize(at(owner)); }};
}

/// `check` may bring the text into its usual form; it returns what is wrong with it.
template <typename Owner, typename Member>
Key<Owner> textKey(const KeyText& text,
                   const std::string& values,
                   const std::function<Wrong(std::string&)>& check,
                   Member at) {
  return {.path = text.path,
          .values = values,
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [=](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                auto value = readText(reader, path, node);
                if (!value) {
                  return false;
                }
                if (const Wrong wrong = check(value->value)) {
                  reader.faults.add(node.where, path, value->shown + " " + *wrong);
                  return false;
                }
                at(owner) = std::move(value->value);
                return true;
              },
          .write = [at](const Owner& owner, std::size_t) { return formatText(at(owner)); }};
}

/// A member of type Enum or std::optional<Enum>.
template <typename Owner, typename Enum, typename Member>
Key<Owner> choiceKey(const KeyText& text, const std::vector<Choice<Enum>>& choices, Member at) {
  std::string values;
  std::vector<std::string> names;
  for (const Choice<Enum>& choice : choices) {
    values += (values.empty() ? "`" : ", `") + choice.name + "`";
    names.push_back(choice.name);
  }
  return {.path = text.path,
          .values = std::move(values),
          .meaning = text.meaning,
          .ranks = text.ranks,
          .read =
              [=](Owner& owner, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto index = readChoice(reader, path, node, names);
                if (index) {
                  at(owner) = choices[*index].value;
                }
                return index.has_value();
              },
          .write = [=](const Owner& owner, std::size_t) -> std::string {
            const std::optional<Enum> value = at(owner);
            for (const Choice<Enum>& choice : choices) {
              if (value == choice.value) {
                return choice.name;
              }
            }
            return {};
          }};
}

/// Any text.
inline Wrong anyText(std::string& /*text*/) {
  return std::nullopt;
}

}  // namespace pushrod::config
