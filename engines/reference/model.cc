// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/model.h"

#include <algorithm>
#include <utility>

#include "engines/reference/digest.h"
#include "engines/reference/names.h"

namespace pushrod::engines::reference {

namespace {

/// In place of a digest: never received, and rebuilt without having been received.
constexpr std::string_view kInitial = "initial";
constexpr std::string_view kUninitialised = "uninitialised";

std::int64_t elementsOf(const TensorSpec& spec) {
  return elementCount(spec.shape).value_or(0);
}

std::string torchSize(const Shape& shape) {
  return "torch.Size(" + shapeText(shape) + ")";
}

std::string wrongShape(const TensorSpec& given, const TensorSpec& wanted, bool fused) {
  if (fused && !given.shape.empty() && !wanted.shape.empty() && given.shape[0] > wanted.shape[0]) {
    return "start (0) + length (" + std::to_string(given.shape[0]) + ") exceeds dimension size (" +
           std::to_string(wanted.shape[0]) + ").";
  }
  return "Attempted to load weight (" + torchSize(given.shape) + ") into parameter (" +
         torchSize(wanted.shape) + ")";
}

}  // namespace

Model::Model(const Profile& profile, const InitialContent& initial, bool wholeLists)
    : profile_(profile), wholeLists_(wholeLists), fixed_(initial.fixed), sealed_(initial.fixed) {
  for (const LoadedTensor& tensor : initial.tensors) {
    add(tensor.spec);
    tensors_[tensor.spec.name].sha256 = tensor.sha256;
  }
  for (const auto& [runtime, digest] : initial.runtimeDigests) {
    const auto found = modules_.find(splitName(runtime).module);
    if (found != modules_.end()) {
      found->second.runtime[runtime] = digest;
    }
  }
}

void Model::add(const TensorSpec& spec) {
  const NameParts parts = splitName(spec.name);
  Module& module = modules_[parts.module];
  module.block = parts.block;
  module.fused = module.fused || parts.fused;
  module.names.push_back(spec.name);
  module.total += elementsOf(spec);
  tensors_[spec.name] = LoadedTensor{spec, std::string(kInitial), nullptr};
}

void Model::begin() {
  placeholders_ = true;
  ++generation_;
  if (profile_.keepsCounters) {
    return;
  }
  for (auto& [name, module] : modules_) {
    module.received = 0;
    module.pieces.clear();
  }
}

void Model::declare(const TensorSpec& spec) {
  if (fixed_) {
    return;
  }
  const auto known = tensors_.find(spec.name);
  if (known == tensors_.end()) {
    add(spec);
    return;
  }
  if (!sealed_ && known->second.spec.shape != spec.shape) {
    Module& module = modules_[splitName(spec.name).module];
    module.total += elementsOf(spec) - elementsOf(known->second.spec);
    known->second.spec = spec;
  }
}

std::string Model::unknownName(const std::string& name) const {
  const std::string_view prefix = "model.";
  const std::string inner = name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
  if (profile_.minor <= 22) {
    return "'" + inner + "'";
  }
  const std::size_t dot = inner.rfind('.');
  return "There is no module or parameter named '" + inner.substr(0, dot) +
         "' in LlamaModel. The available parameters belonging to the model are: " +
         std::to_string(tensors_.size()) + " names";
}

std::optional<std::string> Model::accept(const LoadedTensor& tensor) {
  const auto known = tensors_.find(tensor.spec.name);
  if (known == tensors_.end()) {
    return unknownName(tensor.spec.name);
  }
  Module& module = modules_[splitName(tensor.spec.name).module];
  if (known->second.spec.shape != tensor.spec.shape) {
    // The tensor stays buffered: until a session ends well every rebuild of this layer fails.
    module.poison = wrongShape(tensor.spec, known->second.spec, module.fused);
    return module.poison;
  }
  module.pieces.insert_or_assign(tensor.spec.name, tensor);
  module.received += elementsOf(tensor.spec);
  if (module.received < module.total || waits()) {
    return std::nullopt;
  }
  if (module.poison) {
    return module.poison;
  }
  rebuild(module);
  return std::nullopt;
}

void Model::rebuild(Module& module) {
  module.mixed = false;
  module.generation = generation_;
  for (const std::string& name : module.names) {
    LoadedTensor& held = tensors_[name];
    const auto piece = module.pieces.find(name);
    if (piece != module.pieces.end()) {
      held.sha256 = piece->second.sha256;
      held.spec = piece->second.spec;
    } else if (elementsOf(held.spec) == 0) {
      held.sha256 = Sha256::of("");
    } else {
      held.sha256 = std::string(kUninitialised);
      module.mixed = true;
    }
  }
  computeRuntime(module);
  module.received = 0;
  module.pieces.clear();
}

void Model::computeRuntime(Module& module) {
  module.runtime.clear();
  if (!module.fused) {
    return;
  }
  std::map<std::string, std::map<int, std::string>> parts;
  for (const std::string& name : module.names) {
    const NameParts split = splitName(name);
    parts[split.runtime][split.order] = name;
  }
  for (const auto& [runtime, byOrder] : parts) {
    Sha256 digest;
    bool complete = true;
    for (const auto& [order, name] : byOrder) {
      const auto piece = module.pieces.find(name);
      if (elementsOf(tensors_[name].spec) == 0) {
        continue;
      }
      if (piece == module.pieces.end()) {
        digest.add(kUninitialised.data(), kUninitialised.size());
      } else if (piece->second.bytes != nullptr) {
        const auto& bytes = piece->second.bytes->data();
        digest.add(bytes.data(), bytes.size());
      } else {
        complete = false;
      }
    }
    module.runtime[runtime] = complete ? digest.hex() : "";
  }
}

void Model::finish() {
  for (auto& [name, module] : modules_) {
    if (module.received > 0 || (waits() && !module.pieces.empty())) {
      rebuild(module);
    }
    module.received = 0;
    module.pieces.clear();
    module.poison.reset();
  }
  placeholders_ = false;
  sealed_ = true;
}

void Model::zero() {
  ++generation_;
  for (auto& [moduleName, module] : modules_) {
    module.generation = generation_;
    module.mixed = false;
    std::map<std::string, std::uint64_t> sizes;
    for (const std::string& name : module.names) {
      LoadedTensor& held = tensors_[name];
      Sha256 digest;
      digest.addZeros(held.spec.bytes());
      held.sha256 = digest.hex();
      sizes[splitName(name).runtime] += held.spec.bytes();
    }
    module.runtime.clear();
    for (const auto& [runtime, bytes] : sizes) {
      Sha256 digest;
      digest.addZeros(bytes);
      module.runtime[runtime] = digest.hex();
    }
  }
}

std::uint64_t Model::latest() const {
  std::uint64_t most = 0;
  for (const auto& [name, module] : modules_) {
    most = std::max(most, module.generation);
  }
  return most;
}

bool Model::torn() const {
  const std::uint64_t newest = latest();
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& entry) {
    const Module& module = entry.second;
    return module.mixed || module.received > 0 || module.generation != newest;
  });
}

std::map<std::string, std::string> Model::digests() const {
  std::map<std::string, std::string> all;
  for (const auto& [name, tensor] : tensors_) {
    all.emplace(name, tensor.sha256);
  }
  return all;
}

std::map<std::string, std::string> Model::layers() const {
  const std::uint64_t newest = latest();
  std::map<std::string, std::string> all;
  for (const auto& [name, module] : modules_) {
    const bool partial = module.mixed || module.received > 0;
    const bool fresh = newest > 0 && module.generation == newest;
    const std::string state = partial ? "mixed" : (fresh ? "new" : "old");
    const auto [entry, first] = all.emplace(module.block, state);
    if (!first && entry->second != state) {
      entry->second = "mixed";
    }
  }
  return all;
}

std::map<std::string, std::string> Model::runtimeDigests() const {
  std::map<std::string, std::string> all;
  for (const auto& [moduleName, module] : modules_) {
    for (const std::string& name : module.names) {
      const NameParts parts = splitName(name);
      if (!parts.fused) {
        all[parts.runtime] = tensors_.at(name).sha256;
        continue;
      }
      const auto digest = module.runtime.find(parts.runtime);
      all[parts.runtime] = digest == module.runtime.end() ? "" : digest->second;
    }
  }
  return all;
}

}  // namespace pushrod::engines::reference
