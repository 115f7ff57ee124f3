// SPDX-License-Identifier: Apache-2.0
#include "transports/content_hasher.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "transports/tensor_bytes.h"

namespace pushrod::transports {

namespace {

struct Part {
  std::string_view name;
  std::string_view fused;
  std::size_t order;
  std::size_t parts;
};

constexpr std::array<Part, 5> kParts = {{{"q_proj", "qkv_proj", 0, 3},
                                         {"k_proj", "qkv_proj", 1, 3},
                                         {"v_proj", "qkv_proj", 2, 3},
                                         {"gate_proj", "gate_up_proj", 0, 2},
                                         {"up_proj", "gate_up_proj", 1, 2}}};

/// Engines round an embedding's rows up to a multiple of this.
constexpr std::int64_t kRowsOfEmbeddings = 64;

/// Begin and end of the last module's own name in "a.b.q_proj.weight".
std::pair<std::size_t, std::size_t> moduleOf(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  const std::size_t end = dot == std::string_view::npos ? name.size() : dot;
  const std::size_t before = end == 0 ? std::string_view::npos : name.rfind('.', end - 1);
  return {before == std::string_view::npos ? 0 : before + 1, end};
}

bool padded(const TensorSpec& spec) {
  constexpr std::array<std::string_view, 4> kModules = {
      "embed_tokens", "lm_head", "wte", "word_embeddings"};
  const std::string_view name = spec.name;
  const auto [begin, end] = moduleOf(name);
  const bool embedding =
      std::find(kModules.begin(), kModules.end(), name.substr(begin, end - begin)) !=
      kModules.end();
  return embedding && !spec.shape.empty() && spec.shape.front() % kRowsOfEmbeddings != 0;
}

}  // namespace

FusedPlace fusedPlace(const std::string& name) {
  const auto [begin, end] = moduleOf(name);
  if (end == name.size()) {
    return {};
  }
  const std::string_view module = std::string_view(name).substr(begin, end - begin);
  for (const Part& part : kParts) {
    if (module == part.name) {
      return {name.substr(0, begin) + std::string(part.fused) + name.substr(end),
              part.order,
              part.parts};
    }
  }
  return {};
}

ContentHasher::ContentHasher(const Manifest& manifest, std::uint64_t budget) : budget_(budget) {
  struct Seen {
    std::set<std::size_t> orders;
    std::set<DType> dtypes;
    std::size_t parts = 0;
  };

  std::map<std::string, Seen> seen;
  for (const TensorSpec& spec : manifest.tensors) {
    const FusedPlace place = fusedPlace(spec.name);
    if (!place.parameter.empty()) {
      Seen& fused = seen[place.parameter];
      fused.orders.insert(place.order);
      fused.dtypes.insert(spec.dtype);
      fused.parts = place.parts;
    }
  }
  for (const auto& [parameter, fused] : seen) {
    if (fused.orders.size() == fused.parts && fused.dtypes.size() == 1) {
      groups_[parameter].parts = fused.parts;
    }
  }
}

void ContentHasher::add(const TensorSpec& spec, const TensorView& view) {
  const FusedPlace place = fusedPlace(spec.name);
  if (!place.parameter.empty() && groups_.contains(place.parameter)) {
    addPart(place.parameter, place.order, spec, view);
    return;
  }
  if (padded(spec)) {
    return;
  }
  Sha256 digest;
  forEachPiece(spec, view, scratch_, [&](std::span<const std::byte> bytes) { digest.add(bytes); });
  digests_[spec.name] = {digest.hex(), spec.dtype};
}

void ContentHasher::addPart(const std::string& parameter,
                            std::size_t order,
                            const TensorSpec& spec,
                            const TensorView& view) {
  Group& group = groups_[parameter];
  if (!group.given) {
    return;
  }
  if (order != group.next) {
    keep(group, order, spec, view);
    return;
  }
  forEachPiece(
      spec, view, scratch_, [&](std::span<const std::byte> bytes) { group.digest.add(bytes); });
  ++group.next;
  for (auto part = group.kept.find(group.next); part != group.kept.end();
       part = group.kept.find(group.next)) {
    group.digest.add(part->second);
    budget_ += part->second.size();
    group.kept.erase(part);
    ++group.next;
  }
  if (group.next == group.parts) {
    digests_[parameter] = {group.digest.hex(), spec.dtype};
    group.given = false;
  }
}

void ContentHasher::keep(Group& group,
                         std::size_t order,
                         const TensorSpec& spec,
                         const TensorView& view) {
  const std::uint64_t bytes = spec.bytes();
  if (bytes > budget_) {
    giveUp(group);
    return;
  }
  budget_ -= bytes;
  std::vector<std::byte>& kept = group.kept[order];
  kept.reserve(bytes);
  forEachPiece(spec, view, scratch_, [&](std::span<const std::byte> piece) {
    kept.insert(kept.end(), piece.begin(), piece.end());
  });
}

void ContentHasher::giveUp(Group& group) {
  for (const auto& [order, bytes] : group.kept) {
    budget_ += bytes.size();
  }
  group.kept.clear();
  group.given = false;
}

common::ContentDigests ContentHasher::finish() {
  return std::move(digests_);
}

}  // namespace pushrod::transports
