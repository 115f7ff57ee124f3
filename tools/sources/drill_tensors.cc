// SPDX-License-Identifier: Apache-2.0
// The tensors of a drill plan.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tools/sources/drill_parts.h"

namespace pushrod::tools {
namespace {

constexpr std::uint64_t kMostTensors = 100'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::size_t kMostDimensions = 8;
constexpr std::string_view kPlaceholder = "{}";

std::vector<std::string_view> dtypeNames() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    names.push_back(dtypeName(static_cast<DType>(i)));
  }
  return names;
}

std::optional<DType> readDType(const JsonNode& node,
                               const std::string& path,
                               std::string_view key,
                               bool required,
                               PlanReader& reader) {
  const auto name = reader.string(node, path, key, required);
  if (!name) {
    return std::nullopt;
  }
  const auto dtype = dtypeFromName(*name);
  if (!dtype) {
    reader.fault(planPath(path, key),
                 quotedName(*name) + " is no dtype that travels; give " + choiceText(dtypeNames()));
  }
  return dtype;
}

std::optional<Shape> readShape(const JsonNode& node, const std::string& path, PlanReader& reader) {
  const JsonNode* list = reader.list(node, path, "shape", PlanReader::kRequired);
  if (list == nullptr) {
    return std::nullopt;
  }
  const std::string place = planPath(path, "shape");
  if (list->items.size() > kMostDimensions) {
    reader.fault(place, "has more than " + std::to_string(kMostDimensions) + " dimensions");
    return std::nullopt;
  }
  Shape shape;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const JsonNode& extent = list->items[i];
    const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (extent.kind != JsonNode::Kind::kInteger || extent.negative || extent.magnitude > most) {
      reader.fault(planPath(place, i), "must be a whole number that is not negative");
      return std::nullopt;
    }
    shape.push_back(static_cast<std::int64_t>(extent.magnitude));
  }
  const auto count = elementCount(shape);
  if (!count || static_cast<std::uint64_t>(*count) > kMostBytes / 8) {
    reader.fault(place, shapeText(shape) + " is too large for a drill");
    return std::nullopt;
  }
  return shape;
}

void readLayout(const JsonNode& node,
                const std::string& path,
                DrillTensor& tensor,
                PlanReader& reader) {
  static constexpr std::pair<std::string_view, DrillLayout> kLayouts[] = {
      {"contiguous", DrillLayout::kContiguous},
      {"transposed", DrillLayout::kTransposed},
      {"strided", DrillLayout::kStrided},
      {"expanded", DrillLayout::kExpanded}};
  const auto name = reader.string(node, path, "layout");
  if (!name) {
    return;
  }
  const auto* const found = std::find_if(std::begin(kLayouts),
                                         std::end(kLayouts),
                                         [&name](const auto& each) { return each.first == *name; });
  if (found == std::end(kLayouts)) {
    reader.fault(
        planPath(path, "layout"),
        quotedName(*name) + " is no layout; give contiguous, transposed, strided or expanded");
    return;
  }
  tensor.layout = found->second;
  const std::size_t needed = tensor.layout == DrillLayout::kTransposed   ? 2
                             : tensor.layout == DrillLayout::kContiguous ? 0
                                                                         : 1;
  if (tensor.spec.shape.size() < needed) {
    reader.fault(planPath(path, "layout"),
                 *name + " needs a shape of at least " + std::to_string(needed) +
                     (needed == 1 ? " dimension" : " dimensions") + ", this one is " +
                     shapeText(tensor.spec.shape));
  }
}

/// What tensors and repeats share.
DrillTensor readCommon(const JsonNode& node, const std::string& path, PlanReader& reader) {
  DrillTensor tensor;
  tensor.spec.dtype =
      readDType(node, path, "dtype", PlanReader::kRequired, reader).value_or(tensor.spec.dtype);
  tensor.stream = readDType(node, path, "stream_dtype", !PlanReader::kRequired, reader)
                      .value_or(tensor.spec.dtype);
  if (auto shape = readShape(node, path, reader)) {
    tensor.spec.shape = std::move(*shape);
    readLayout(node, path, tensor, reader);
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  tensor.seed = reader.integer(node, path, "seed", 0, kMost).value_or(0);
  // Whether the job has that rank is the library's to check, as for any manifest.
  tensor.spec.owner =
      static_cast<int>(reader.integer(node, path, "owner", 0, 1'000'000).value_or(0));
  return tensor;
}

/// `alias_of` may be null. The tensor whose memory it is must come before.
void readAlias(const JsonNode& node,
               const std::string& path,
               const std::map<std::string, std::size_t>& places,
               const std::vector<DrillTensor>& before,
               DrillTensor& tensor,
               PlanReader& reader) {
  const JsonNode* alias = node.find("alias_of");
  if (alias == nullptr || alias->kind == JsonNode::Kind::kNull) {
    return;
  }
  const std::string place = planPath(path, "alias_of");
  if (alias->kind != JsonNode::Kind::kString) {
    reader.fault(place,
                 "must be a tensor's name or null, not " + std::string(jsonKindText(alias->kind)));
    return;
  }
  const auto found = places.find(alias->text);
  if (found == places.end()) {
    reader.fault(place, "no tensor before this one is called " + quotedName(alias->text));
    return;
  }
  const DrillTensor& target = before[found->second];
  if (target.spec.shape != tensor.spec.shape || target.stream != tensor.stream) {
    reader.fault(
        place, quotedName(alias->text) + " has another shape or stream dtype: one memory has one");
    return;
  }
  tensor.aliasOf = target.aliasOf.value_or(found->second);
  tensor.layout = target.layout;
}

void readList(const JsonNode& list, std::vector<DrillTensor>& tensors, PlanReader& reader) {
  if (list.items.size() > kMostTensors) {
    reader.fault("tensors", "holds more than " + std::to_string(kMostTensors));
    return;
  }
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const JsonNode& node = list.items[i];
    const std::string path = planPath("tensors", i);
    DrillTensor tensor;
    if (reader.object(
            node,
            path,
            {"name", "dtype", "shape", "stream_dtype", "layout", "alias_of", "seed", "owner"})) {
      tensor = readCommon(node, path, reader);
      const auto name = reader.string(node, path, "name", PlanReader::kRequired);
      if (name && name->empty()) {
        reader.fault(planPath(path, "name"), "is empty");
      }
      tensor.spec.name = name.value_or("");
      readAlias(node, path, places, tensors, tensor, reader);
      places.emplace(tensor.spec.name, i);
    }
    tensors.push_back(std::move(tensor));
  }
}

void readRepeat(const JsonNode& node, std::vector<DrillTensor>& tensors, PlanReader& reader) {
  const std::string path = "repeat";
  if (!reader.object(
          node,
          path,
          {"prefix", "count", "dtype", "shape", "stream_dtype", "layout", "seed", "owner"})) {
    return;
  }
  const DrillTensor common = readCommon(node, path, reader);
  const auto prefix = reader.string(node, path, "prefix", PlanReader::kRequired);
  const std::size_t hole = prefix ? prefix->find(kPlaceholder) : std::string::npos;
  if (prefix && hole == std::string::npos) {
    reader.fault("repeat.prefix", "lacks {}, which stands for the number of each tensor");
  }
  const auto count = reader.integer(node, path, "count", 0, kMostTensors, PlanReader::kRequired);
  if (hole == std::string::npos || !count) {
    return;
  }
  for (std::uint64_t i = 0; i < *count; ++i) {
    DrillTensor tensor = common;
    tensor.spec.name = *prefix;
    tensor.spec.name.replace(hole, kPlaceholder.size(), std::to_string(i));
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace

std::vector<DrillTensor> readDrillTensors(const JsonNode& root, PlanReader& reader) {
  std::vector<DrillTensor> tensors;
  const JsonNode* repeat = root.find("repeat");
  if (root.find("tensors") == nullptr && repeat == nullptr) {
    reader.fault("tensors", "is missing, and so is repeat; give one of them");
  }
  if (const JsonNode* list = reader.list(root, "", "tensors")) {
    readList(*list, tensors, reader);
  }
  if (repeat != nullptr) {
    readRepeat(*repeat, tensors, reader);
  }
  return tensors;
}

}  // namespace pushrod::tools
