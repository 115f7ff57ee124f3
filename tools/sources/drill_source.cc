// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/drill_source.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "tools/sources/drill_values.h"

namespace pushrod::tools {
namespace {

std::unique_ptr<std::byte[]> allocate(std::uint64_t bytes) {
  // Not initialised: every byte is written before it is shown.
  return std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes > 0 ? bytes : 1]);
}

Status noMemory(std::uint64_t bytes) {
  return {Code::kUnavailable, "no memory for a tensor of " + std::to_string(bytes) + " bytes"};
}

bool changesStream(FaultKind kind) {
  return kind == FaultKind::kMissing || kind == FaultKind::kExtra || kind == FaultKind::kReorder ||
         kind == FaultKind::kWrongShape || kind == FaultKind::kOtherValues;
}

}  // namespace

DrillSource::DrillSource(const DrillPlan& plan,
                         const DrillPush& push,
                         ShareGather& gather,
                         FaultActor& actor,
                         bool draft)
    : plan_(plan), push_(push), gather_(gather), actor_(actor) {
  for (const DrillFault& fault : push.faults) {
    if (fault.rank == gather.rank() && fault.draft == draft) {
      mine_.push_back(fault);
    }
  }
  entered_.resize(mine_.size(), 0);
  shared_.resize(plan.tensors.size(), false);
  for (const DrillTensor& tensor : plan.tensors) {
    if (tensor.aliasOf) {
      shared_[*tensor.aliasOf] = true;
    }
  }
}

Result<Manifest> DrillSource::manifest() {
  return plan_.manifest();
}

Status DrillSource::enter(Phase phase) {
  for (std::size_t i = 0; i < mine_.size(); ++i) {
    if (mine_[i].phase == phase && ++entered_[i] <= mine_[i].times) {
      Status acted = actor_.act(mine_[i]);
      if (!acted) {
        return acted;
      }
    }
  }
  return {};
}

Status DrillSource::begin() {
  ++pass_;
  position_ = 0;
  kept_.clear();
  active_ = faultsOfPass();
  planItems();
  std::uint64_t stored = 0;
  std::uint64_t arranged = 0;
  for (const DrillTensor& tensor : plan_.tensors) {
    stored = std::max(stored, storedBytes(tensor));
    arranged = std::max(arranged, arrangedBytes(tensor));
  }
  if (!stored_) {
    stored_ = allocate(stored);
    arranged_ = allocate(arranged);
  }
  return stored_ && arranged_ ? Status() : noMemory(std::max(stored, arranged));
}

std::vector<DrillFault> DrillSource::faultsOfPass() const {
  std::vector<DrillFault> active;
  std::copy_if(mine_.begin(), mine_.end(), std::back_inserter(active), [this](const auto& fault) {
    return !fault.phase && pass_ <= fault.times;
  });
  return active;
}

void DrillSource::planItems() {
  items_.clear();
  for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
    items_.push_back({.tensor = i});
  }
  for (const DrillFault& fault : active_) {
    if (!changesStream(fault.kind)) {
      continue;
    }
    const auto at = std::find_if(items_.begin(), items_.end(), [&fault](const Item& item) {
      return !item.extra && fault.tensor == item.tensor;
    });
    if (fault.kind == FaultKind::kExtra) {
      items_.insert(at, Item{.extra = true});
    } else if (at == items_.end()) {
      continue;  // An earlier fault took it away.
    } else if (fault.kind == FaultKind::kMissing) {
      items_.erase(at);
    } else if (fault.kind == FaultKind::kWrongShape) {
      at->wrongShape = true;
    } else if (fault.kind == FaultKind::kOtherValues) {
      at->otherValues = true;
    } else if (std::next(at) != items_.end()) {
      std::iter_swap(at, std::next(at));
    }
  }
}

Status DrillSource::actAt(std::size_t position) {
  const bool end = position == plan_.tensors.size();
  for (const DrillFault& fault : active_) {
    const bool here = end ? fault.afterLast : fault.tensor == position;
    if (here && !changesStream(fault.kind)) {
      Status acted = actor_.act(fault);
      if (!acted) {
        return acted;
      }
    }
  }
  return {};
}

Status DrillSource::gatherTensor(std::size_t index) {
  const DrillTensor& tensor = plan_.tensors[index];
  const std::uint64_t bytes = storedBytes(tensor);
  if (tensor.aliasOf || bytes == 0) {
    return {};
  }
  const std::span<std::byte> whole(stored_.get(), bytes);
  const Share mine = shareOf(bytes, gather_.rank(), gather_.size());
  Status made =
      makeStored(tensor, push_.version, mine.offset, whole.subspan(mine.offset, mine.bytes));
  if (!made) {
    return made;
  }
  gathering_ = true;
  const Status gathered = gather_.gather(whole);
  gathering_ = false;
  return gathered ? gathered : gathered.prefixed("tensor " + tensor.spec.name);
}

Result<std::optional<TensorView>> DrillSource::next() {
  if (!stored_) {
    return Status(Code::kInternal, "next() before begin()");
  }
  const std::size_t position = position_++;
  if (position <= plan_.tensors.size()) {
    const Status acted = actAt(position);
    if (!acted) {
      return acted;
    }
  }
  if (position < plan_.tensors.size()) {
    const Status gathered = gatherTensor(position);
    if (!gathered) {
      return gathered;
    }
  }
  if (position >= items_.size()) {
    return std::optional<TensorView>();
  }
  const Item& item = items_[position];
  Result<TensorView> shown = view(item, !item.extra && item.tensor == position);
  if (!shown) {
    return shown.status();
  }
  return std::optional<TensorView>(std::move(*shown));
}

Result<std::byte*> DrillSource::memoryOf(std::size_t index, bool gathered) {
  const std::size_t root = plan_.tensors[index].aliasOf.value_or(index);
  const DrillTensor& owner = plan_.tensors[root];
  if (const auto kept = kept_.find(root); kept != kept_.end()) {
    return kept->second.get();
  }
  const std::uint64_t bytes = arrangedBytes(owner);
  std::byte* memory = arranged_.get();
  if (shared_[root]) {
    kept_[root] = allocate(bytes);
    memory = kept_[root].get();
    if (memory == nullptr) {
      return noMemory(bytes);
    }
  }
  const std::span<std::byte> stored(stored_.get(), storedBytes(owner));
  if (!gathered || root != index) {
    const Status made = makeStored(owner, push_.version, 0, stored);
    if (!made) {
      return made;
    }
  }
  arrange(owner, stored, {memory, bytes});
  return memory;
}

Result<TensorView> DrillSource::view(const Item& item, bool gathered) {
  TensorView view;
  if (item.extra) {
    static constexpr std::array<std::byte, 8> kNothing = {};
    view.name = "drill.extra";
    view.shape = {1};
    view.data = kNothing.data();
    return view;
  }
  const DrillTensor& tensor = plan_.tensors[item.tensor];
  const Result<std::byte*> memory = memoryOf(item.tensor, gathered);
  if (!memory) {
    return memory.status();
  }
  view.name = tensor.spec.name;
  view.dtype = tensor.stream;
  view.shape = tensor.spec.shape;
  view.strides = layoutStrides(tensor);
  view.data = *memory;
  if (item.otherValues && tensor.spec.bytes() > 0) {
    **memory ^= std::byte{1};
  }
  if (item.wrongShape) {
    view.shape.push_back(1);
    if (!view.strides.empty()) {
      view.strides.push_back(1);
    }
  }
  return view;
}

bool DrillSource::abort() noexcept {
  actor_.endHang();
  // Outside a gather there is nothing to end, and the next one must not find itself aborted.
  return !gathering_ || gather_.abort();
}

bool DrillSource::recover() {
  return gather_.recover();
}

}  // namespace pushrod::tools
