// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pushrod::python {

/// Whether the interpreter ends. From then on no thread of ours asks for the GIL: a thread that
/// does while the interpreter is torn down is ended in the middle of its work.
[[nodiscard]] bool isFinalizing() noexcept;
/// For the module's atexit function, before it waits for calls that are out.
void setFinalizing() noexcept;
/// Where a call's thread stays for the rest of the process, which is about to end.
[[noreturn]] void park() noexcept;

}  // namespace pushrod::python
