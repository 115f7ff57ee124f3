// SPDX-License-Identifier: Apache-2.0
// Manifests as values: validity, canonical text, comparison, declared types.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_set>

#include "transports/cast.h"
#include "transports/manifest_check.h"
#include "transports/utf8.h"

namespace pushrod::transports {

namespace {

constexpr std::string_view kHeader = "pushrod manifest 1\n";

/// Consumes one manifest text from its front; the first fault sticks.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return at_ == text_.size(); }

  [[nodiscard]] std::size_t at() const { return at_; }

  bool skip(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) {
      return false;
    }
    at_ += expected.size();
    return true;
  }

  template <typename Number>
  bool number(Number& value) {
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    at_ += static_cast<std::size_t>(end - begin);
    // Only the canonical spelling is accepted, so that equal manifests have equal texts.
    return error == std::errc() && std::string_view(begin, end) == std::to_string(value);
  }

  bool take(std::size_t length, std::string_view& piece) {
    if (length > text_.size() - at_) {
      return false;
    }
    piece = text_.substr(at_, length);
    at_ += length;
    return true;
  }

  bool word(std::string_view& piece) {
    const std::size_t end = text_.find(' ', at_);
    return end != std::string_view::npos && take(end - at_, piece);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

bool readShape(TextReader& in, Shape& shape) {
  if (!in.skip("[")) {
    return false;
  }
  if (in.skip("]")) {
    return true;
  }
  do {
    std::int64_t extent = 0;
    if (!in.number(extent)) {
      return false;
    }
    shape.push_back(extent);
  } while (in.skip(", "));
  return in.skip("]");
}

bool readTensor(TextReader& in, TensorSpec& tensor) {
  std::size_t length = 0;
  std::string_view name;
  std::string_view dtype;
  if (!in.number(length) || !in.skip(":") || !in.take(length, name) || !in.skip(" ") ||
      !in.word(dtype) || !in.skip(" ") || !readShape(in, tensor.shape) || !in.skip(" ") ||
      !in.number(tensor.owner) || !in.skip("\n")) {
    return false;
  }
  const auto known = dtypeFromName(dtype);
  if (!known.has_value()) {
    return false;
  }
  tensor.name = name;
  tensor.dtype = *known;
  return true;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

std::optional<DType> overrideFor(const std::string& name, const DtypesConfig& dtypes) {
  const auto exact = dtypes.overrides.find(name);
  if (exact != dtypes.overrides.end()) {
    return dtypeFromName(exact->second);
  }
  const std::pair<const std::string, std::string>* best = nullptr;
  for (const auto& entry : dtypes.overrides) {
    if (matches(entry.first, name) &&
        (best == nullptr || entry.first.size() > best->first.size())) {
      best = &entry;
    }
  }
  return best == nullptr ? std::nullopt : dtypeFromName(best->second);
}

Status refused(const std::string& text) {
  return {Code::kInvalidArgument, "the manifest is refused: " + text};
}

}  // namespace

Status validateManifest(const Manifest& manifest) {
  if (manifest.tensors.empty()) {
    return refused("it is empty, and a push needs at least one tensor");
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::unordered_set<std::string_view> names;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& tensor = manifest.tensors[i];
    const std::string place = "tensor " + std::to_string(i) + " '" + tensor.describe() + "' ";
    if (tensor.name.empty()) {
      return refused(place + "has no name");
    }
    if (!isUtf8(tensor.name)) {
      return refused("the name of tensor " + std::to_string(i) + " is not valid UTF-8");
    }
    if (!names.insert(tensor.name).second) {
      return refused(place + "has a name that an earlier tensor has, and each may come only once");
    }
    const auto count = elementCount(tensor.shape);
    if (!count.has_value()) {
      return refused(place + "has a shape with a negative extent or too many elements");
    }
    if (static_cast<std::uint64_t>(*count) > (kMost - total) / itemSize(tensor.dtype)) {
      return refused(place + "makes the model larger than 2^63 bytes");
    }
    total += tensor.bytes();
    if (tensor.owner < 0) {
      return refused(place + "has owner rank " + std::to_string(tensor.owner));
    }
  }
  return {};
}

std::string manifestText(const Manifest& manifest) {
  std::string text(kHeader);
  for (const TensorSpec& tensor : manifest.tensors) {
    // The length before the name lets it hold any character.
    text.append(std::to_string(tensor.name.size())).append(":").append(tensor.name);
    text.append(" ").append(dtypeName(tensor.dtype)).append(" ").append(shapeText(tensor.shape));
    text.append(" ").append(std::to_string(tensor.owner)).append("\n");
  }
  return text;
}

Result<Manifest> parseManifestText(std::string_view text) {
  TextReader in(text);
  Manifest manifest;
  bool sound = in.skip(kHeader);
  while (sound && !in.done()) {
    sound = readTensor(in, manifest.tensors.emplace_back());
  }
  if (!sound) {
    return Status(Code::kDataMismatch,
                  "the shared manifest cannot be read at byte " + std::to_string(in.at()) +
                      "; all ranks must run the same release");
  }
  return manifest;
}

std::string firstManifestDifference(const Manifest& mine, const Manifest& rank0) {
  const std::size_t common = std::min(mine.tensors.size(), rank0.tensors.size());
  const auto text = [](const TensorSpec& tensor) {
    std::string clause = "'";
    clause.append(tensor.describe()).append("' owned by rank ");
    return clause.append(std::to_string(tensor.owner));
  };
  for (std::size_t i = 0; i < common; ++i) {
    if (mine.tensors[i] != rank0.tensors[i]) {
      return "tensor " + std::to_string(i) + " is " + text(mine.tensors[i]) + " here and " +
             text(rank0.tensors[i]) + " on rank 0";
    }
  }
  if (mine.tensors.size() == rank0.tensors.size()) {
    return {};
  }
  const bool missing = mine.tensors.size() < rank0.tensors.size();
  const Manifest& longer = missing ? rank0 : mine;
  return "tensor " + std::to_string(common) + " " + text(longer.tensors[common]) +
         (missing ? " is missing here" : " is extra here") + ": this rank declares " +
         std::to_string(mine.tensors.size()) + " tensors, rank 0 " +
         std::to_string(rank0.tensors.size());
}

Manifest declareDtypes(Manifest manifest, const DtypesConfig& dtypes) {
  const auto fallback = dtypeFromName(dtypes.defaultDtype);
  for (TensorSpec& tensor : manifest.tensors) {
    if (const auto chosen = overrideFor(tensor.name, dtypes); chosen.has_value()) {
      tensor.dtype = *chosen;
    } else if (fallback.has_value() && isCastable(tensor.dtype)) {
      tensor.dtype = *fallback;
    }
  }
  return manifest;
}

}  // namespace pushrod::transports
