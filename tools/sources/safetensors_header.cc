// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "tools/sources/safetensors.h"
#include "tools/sources/strict_json.h"

namespace pushrod::tools {
namespace {

// A tensor costs about nine values, so this allows some 450,000 tensors.
constexpr std::size_t kMaxValues = std::size_t{4} << 20;
constexpr std::size_t kMaxNameBytes = 1024;
constexpr std::size_t kMaxDimensions = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr std::array<std::pair<std::string_view, DType>, kDTypeCount> kDTypes = {{
    {"BOOL", DType::kBool},
    {"U8", DType::kUint8},
    {"U16", DType::kUint16},
    {"U32", DType::kUint32},
    {"U64", DType::kUint64},
    {"I8", DType::kInt8},
    {"I16", DType::kInt16},
    {"I32", DType::kInt32},
    {"I64", DType::kInt64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBfloat16},
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"F8_E4M3", DType::kFloat8E4m3fn},
    {"F8_E5M2", DType::kFloat8E5m2},
    {"F8_E8M0", DType::kFloat8E8m0fnu},
}};

Status refused(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

std::string knownDTypes() {
  std::string names;
  for (const auto& [name, dtype] : kDTypes) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

Result<DType> readDType(const JsonNode& node) {
  if (node.kind != JsonNode::Kind::kString) {
    return refused("its dtype is not a text");
  }
  for (const auto& [name, dtype] : kDTypes) {
    if (name == node.text) {
      return dtype;
    }
  }
  return refused("its dtype " + quotedName(node.text) + " cannot be sent; those that can are " +
                 knownDTypes());
}

bool isSmallInteger(const JsonNode& node) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return node.kind == JsonNode::Kind::kInteger && (!node.negative || node.magnitude == 0) &&
         node.magnitude <= kMost;
}

Result<Shape> readShape(const JsonNode& node) {
  if (node.kind != JsonNode::Kind::kArray) {
    return refused("its shape is not a list");
  }
  if (node.items.size() > kMaxDimensions) {
    return refused("its shape has " + std::to_string(node.items.size()) +
                   " dimensions, more than the " + std::to_string(kMaxDimensions) + " allowed");
  }
  Shape shape;
  for (const JsonNode& extent : node.items) {
    if (!isSmallInteger(extent)) {
      return refused("its shape holds something that is no number of elements");
    }
    shape.push_back(static_cast<std::int64_t>(extent.magnitude));
  }
  return shape;
}

/// Bytes that the shape needs, checked before anything is multiplied past 63 bits.
Result<std::uint64_t> neededBytes(DType dtype, const Shape& shape) {
  const std::optional<std::int64_t> elements = elementCount(shape);
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!elements || static_cast<std::uint64_t>(*elements) > limit / itemSize(dtype)) {
    return refused("its shape " + shapeText(shape) + " is larger than any memory");
  }
  return static_cast<std::uint64_t>(*elements) * itemSize(dtype);
}

Status readRange(const JsonNode& node, std::uint64_t dataBytes, StoredTensor& tensor) {
  if (node.kind != JsonNode::Kind::kArray || node.items.size() != 2 ||
      !isSmallInteger(node.items[0]) || !isSmallInteger(node.items[1])) {
    return refused("its data_offsets are not two byte positions");
  }
  const std::uint64_t begin = node.items[0].magnitude;
  const std::uint64_t end = node.items[1].magnitude;
  const std::string range = "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin > end) {
    return refused("its bytes " + range + " end before they begin");
  }
  if (end > dataBytes) {
    return refused("its bytes " + range + " lie beyond the file, which holds " +
                   std::to_string(dataBytes) + " bytes of tensors");
  }
  if (end - begin != tensor.bytes) {
    return refused("its bytes " + range + " are " + std::to_string(end - begin) + ", but " +
                   std::string(dtypeName(tensor.dtype)) + " " + shapeText(tensor.shape) +
                   " needs " + std::to_string(tensor.bytes));
  }
  tensor.offset = begin;
  return {};
}

Result<StoredTensor> readTensor(const std::string& name,
                                const JsonNode& node,
                                std::uint64_t dataBytes) {
  if (node.kind != JsonNode::Kind::kObject) {
    return refused("its entry is not an object");
  }
  for (const std::string& key : node.keys) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return refused("its entry has the unknown key " + quotedName(key));
    }
  }
  for (const std::string_view key : {"dtype", "shape", "data_offsets"}) {
    if (node.find(key) == nullptr) {
      return refused("its entry lacks " + std::string(key));
    }
  }
  const Result<DType> dtype = readDType(*node.find("dtype"));
  if (!dtype) {
    return dtype.status();
  }
  Result<Shape> shape = readShape(*node.find("shape"));
  if (!shape) {
    return shape.status();
  }
  const Result<std::uint64_t> bytes = neededBytes(*dtype, *shape);
  if (!bytes) {
    return bytes.status();
  }
  StoredTensor tensor{name, *dtype, std::move(*shape), 0, *bytes};
  const Status range = readRange(*node.find("data_offsets"), dataBytes, tensor);
  if (!range) {
    return range;
  }
  return tensor;
}

Status checkName(const std::string& name) {
  if (name.empty()) {
    return refused("a tensor has an empty name");
  }
  if (name.size() > kMaxNameBytes) {
    return refused("the tensor name " + quotedName(name) + "... has " +
                   std::to_string(name.size()) + " bytes, more than the " +
                   std::to_string(kMaxNameBytes) + " allowed");
  }
  return {};
}

Status checkMetadata(const JsonNode& node) {
  const bool texts = std::all_of(node.items.begin(), node.items.end(), [](const JsonNode& item) {
    return item.kind == JsonNode::Kind::kString;
  });
  return node.kind == JsonNode::Kind::kObject && texts
             ? Status()
             : refused("__metadata__ is not an object of texts");
}

/// The bytes must be tiled: every byte in one tensor.
Status checkTiling(const std::vector<StoredTensor>& sorted, std::uint64_t dataBytes) {
  std::uint64_t covered = 0;
  const StoredTensor* last = nullptr;
  for (const StoredTensor& tensor : sorted) {
    if (tensor.offset < covered) {
      return refused("the bytes of tensors " + quotedName(last->name) + " and " +
                     quotedName(tensor.name) + " overlap");
    }
    if (tensor.offset > covered) {
      return refused("bytes " + std::to_string(covered) + " to " + std::to_string(tensor.offset) +
                     " before tensor " + quotedName(tensor.name) + " belong to no tensor");
    }
    covered = tensor.offset + tensor.bytes;
    last = &tensor;
  }
  if (covered != dataBytes) {
    return refused(std::to_string(dataBytes - covered) +
                   " bytes at the file's end belong to no tensor");
  }
  return {};
}

}  // namespace

Result<std::vector<StoredTensor>> parseSafetensorsHeader(std::string_view header,
                                                         std::uint64_t dataBytes) {
  // The format pads with spaces behind the object and allows nothing before it.
  if (header.empty() || header.front() != '{') {
    return refused("the header does not begin with '{'");
  }
  const Result<JsonNode> root = parseStrictJson(header, kMaxValues);
  if (!root) {
    return root.status().prefixed("the header is not usable");
  }
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < root->keys.size(); ++i) {
    const std::string& name = root->keys[i];
    if (name == kMetadataKey) {
      const Status metadata = checkMetadata(root->items[i]);
      if (!metadata) {
        return metadata;
      }
      continue;
    }
    const Status usable = checkName(name);
    if (!usable) {
      return usable;
    }
    Result<StoredTensor> tensor = readTensor(name, root->items[i], dataBytes);
    if (!tensor) {
      return tensor.status().prefixed("tensor " + quotedName(name));
    }
    tensors.push_back(std::move(*tensor));
  }
  // Stable, and empty tensors first: those at the place where another begins do not overlap it.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.offset + a.bytes) < std::pair(b.offset, b.offset + b.bytes);
  });
  const Status tiling = checkTiling(tensors, dataBytes);
  if (!tiling) {
    return tiling;
  }
  return tensors;
}

}  // namespace pushrod::tools
