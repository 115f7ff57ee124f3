// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/buffers.h"

#include <string>
#include <sys/mman.h>

namespace pushrod::transports::tcp {

Status PackedBuffer::reserve(std::uint64_t bytes) {
  if (bytes <= capacity()) {
    return {};
  }
  release();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return {Code::kUnavailable,
            "no memory for a packed buffer of " + std::to_string(bytes) +
                " bytes; lower transport.buffer or transport.buffers"};
  }
  // Fewer page faults while packing; a system without huge pages just declines.
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(memory);
  capacity_.store(bytes, std::memory_order_relaxed);
  return {};
}

void PackedBuffer::release() {
  if (data_ != nullptr) {
    ::munmap(data_, capacity());
    data_ = nullptr;
    capacity_.store(0, std::memory_order_relaxed);
  }
}

}  // namespace pushrod::transports::tcp
