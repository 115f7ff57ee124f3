// SPDX-License-Identifier: Apache-2.0
// The keys of transport and push.
#include <pushrod/tensor.h>

#include "config/key_table.h"
#include "config/map_reader.h"
#include "config/text_check.h"

namespace pushrod::config {

namespace {

using C = Config;

std::string dtypeNames() {
  std::string names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(dtypeName(static_cast<DType>(i)));
  }
  return names;
}

Wrong checkDtype(std::string& dtype) {
  return dtype.empty() || dtypeFromName(dtype) ? Wrong()
                                               : "is not one of the dtypes " + dtypeNames();
}

bool readOverrides(std::map<std::string, std::string>& overrides,
                   const TreeNode& node,
                   Reader& reader,
                   const std::string& path) {
  if (node.kind != TreeNode::Kind::kMap) {
    reader.faults.add(node.where,
                      path,
                      "must be a section of \"NAME PATTERN\": DTYPE lines, not " + kindText(node));
    return false;
  }
  std::map<std::string, Position> seen;
  for (const auto& [pattern, value] : node.entries) {
    const std::string here = path + "." + quoted(pattern.text);
    if (!acceptKey(pattern, here, seen, reader)) {
      continue;
    }
    if (pattern.text.empty() || !isPrintable(pattern.text)) {
      reader.faults.add(pattern.where, here, "a name pattern must be a printable text, not empty");
      continue;
    }
    const auto dtype = readText(reader, here, value);
    if (!dtype) {
      continue;
    }
    if (!dtypeFromName(dtype->value)) {
      reader.faults.add(
          value.where, here, dtype->shown + " is not one of the dtypes " + dtypeNames());
      continue;
    }
    overrides.emplace(pattern.text, dtype->value);
  }
  return overrides.size() == node.entries.size();
}

/// Keys are not searched for variables, so a "${" in one stays as it is.
std::string patternText(const std::string& pattern) {
  std::string text = "\"";
  for (const char c : pattern) {
    text += (c == '"' || c == '\\') ? "\\" : "";
    text += c;
  }
  return text + '"';
}

Key<C> overridesKey() {
  return {.path = "push.dtypes.overrides",
          .values = "section of `\"PATTERN\": DTYPE`",
          .meaning = "What is declared for tensors whose name matches a pattern (`*` and `?`).",
          .read =
              [](C& c, const TreeNode& node, Reader& reader, const std::string& path) {
                return readOverrides(c.push.dtypes.overrides, node, reader, path);
              },
          .write = [](const C& c, std::size_t) -> std::string {
            std::string text;
            for (const auto& [pattern, dtype] : c.push.dtypes.overrides) {
              text += (text.empty() ? "" : ", ") + patternText(pattern) + ": " + dtype;
            }
            return "{" + text + "}";
          }};
}

}  // namespace

std::vector<Key<Config>> transportKeys() {
  constexpr std::uint64_t kLargestBuffer = std::uint64_t{1} << 40U;
  return {
      choiceKey<C, TransportKind>(
          {"transport.kind",
           "How bytes travel. `nccl` serves engines whose backend is `nccl` "
           "or `pushrod_nccl`, whichever they show."},
          {{TransportKind::kNccl, "nccl"},
           {TransportKind::kIpc, "ipc"},
           {TransportKind::kTcp, "tcp"},
           {TransportKind::kShm, "shm"}},
          [](auto& c) -> auto& { return c.transport.kind; }),
      sizeKey<C>(
          {"transport.buffer",
           "One packed buffer. `nccl` and `tcp` close it after the tensor that exceeds it: "
           "the largest chunk is this plus the largest tensor. `ipc` and `shm` close it before, "
           "and refuse a tensor that is larger."},
          1,
          kLargestBuffer,
          [](auto& c) -> auto& { return c.transport.buffer; }),
      integerKey<C>(
          {"transport.buffers", "Packed buffers in flight; `shm` uses at least two."},
          1,
          64,
          [](auto& c) -> auto& { return c.transport.buffers; }),
      switchKey<C>(
          {"transport.keep_buffers",
           "`false` frees them after each push (trainers that share their device)."},
          [](auto& c) -> auto& { return c.transport.keepBuffers; }),
      choiceKey<C, Packed>(
          {"transport.packed", "`nccl`, `ipc`: several tensors in one buffer."},
          {{Packed::kAuto, "auto"}, {Packed::kTrue, "true"}, {Packed::kFalse, "false"}},
          [](auto& c) -> auto& { return c.transport.packed; }),
      switchKey<C>(
          {"transport.owners",
           "`nccl` with profile `main`, `tcp`: tensors are sent by the rank that owns them."},
          [](auto& c) -> auto& { return c.transport.owners; }),
      switchKey<C>(
          {"transport.load_plan", "`nccl`, profile `main`: send by the engine's load plan."},
          [](auto& c) -> auto& { return c.transport.loadPlan; }),
      switchKey<C>(
          {"transport.digest", "`tcp`: XXH3-64 of each chunk."},
          [](auto& c) -> auto& { return c.transport.digest; }),
  };
}

std::vector<Key<Config>> channelKeys() {
  return {
      choiceKey<C, Group>(
          {"transport.group", "`nccl`, `tcp`: one channel over all engines, or each its own."},
          {{Group::kShared, "shared"}, {Group::kPerEngine, "per_engine"}},
          [](auto& c) -> auto& { return c.transport.group; }),
      textKey<C>(
          {"transport.bind",
           "Address that the sender listens on and announces to engines.",
           Ranks::kMayDiffer},
          "`auto`, IP address or host name",
          [](std::string& bind) { return checkBind(bind); },
          [](auto& c) -> auto& { return c.transport.bind; }),
      integerKey<C>(
          {"transport.port",
           "Its port; 0: the system chooses. The socket stays open until used.",
           Ranks::kMayDiffer},
          0,
          65535,
          [](auto& c) -> auto& { return c.transport.port; }),
      choiceKey<C, Rendezvous>(
          {"transport.rendezvous", "`nccl`: how the communicator is met."},
          {{Rendezvous::kAuto, "auto"},
           {Rendezvous::kUniqueId, "unique_id"},
           {Rendezvous::kTcpStore, "tcp_store"}},
          [](auto& c) -> auto& { return c.transport.rendezvous; }),
      textKey<C>(
          {"transport.library",
           "`nccl`: path of libnccl.so.2; empty: the one already loaded, else the loader's.",
           Ranks::kMayDiffer},
          "path",
          anyText,
          [](auto& c) -> auto& { return c.transport.library; }),
  };
}

std::vector<Key<Config>> pushKeys() {
  return {
      choiceKey<C, PauseMode>(
          {"push.pause", "What `/pause` does with running requests."},
          {{PauseMode::kKeep, "keep"}, {PauseMode::kWait, "wait"}, {PauseMode::kAbort, "abort"}},
          [](auto& c) -> auto& { return c.push.pause; }),
      switchKey<C>(
          {"push.clear_cache",
           "Of `/pause`: running requests are computed anew with the new weights; `false`: "
           "they go on with their old cache."},
          [](auto& c) -> auto& { return c.push.clearCache; }),
      textKey<C>(
          {"push.dtypes.default", "What is declared for all tensors; empty: what the source says."},
          "dtype",
          checkDtype,
          [](auto& c) -> auto& { return c.push.dtypes.defaultDtype; }),
      overridesKey(),
      choiceKey<C, Stop>(
          {"push.stop",
           "How a failed pass ends: at the next chunk, or, for sources that cannot stop in the "
           "middle, at the source's end, sending nothing more."},
          {{Stop::kChunk, "chunk"}, {Stop::kPass, "pass"}},
          [](auto& c) -> auto& { return c.push.stop; }),
      switchKey<C>(
          {"push.flush",
           "Reset the prefix cache after finish. After a failure it is reset even when false."},
          [](auto& c) -> auto& { return c.push.flush; }),
      switchKey<C>(
          {"push.flush_external", "Also the engine's external cache, where it has one."},
          [](auto& c) -> auto& { return c.push.flushExternal; }),
  };
}

std::vector<Key<Config>> proofKeys() {
  return {
      choiceKey<C, Verify>(
          {"push.verify",
           "What proves a push: the version that each engine then reports, or its parameters' "
           "SHA-256 as well (releases from 0.32). `none` is logged as unsafe."},
          {{Verify::kVersion, "version"}, {Verify::kChecksum, "checksum"}, {Verify::kNone, "none"}},
          [](auto& c) -> auto& { return c.push.verify; }),
      integerKey<C>(
          {"push.verify_every",
           "`checksum`: at the first push, then at every so many-th, and at every resend."},
          1,
          1'000'000,
          [](auto& c) -> auto& { return c.push.verifyEvery; }),
      switchKey<C>(
          {"push.resend", "Send everything once more after a failure that allows it."},
          [](auto& c) -> auto& { return c.push.resend; }),
      choiceKey<C, DtypeMismatch>(
          {"push.dtype_mismatch", "A float tensor streamed in another float dtype than declared."},
          {{DtypeMismatch::kCast, "cast"}, {DtypeMismatch::kRefuse, "refuse"}},
          [](auto& c) -> auto& { return c.push.dtypeMismatch; }),
      choiceKey<C, VersionMarker>(
          {"push.version_marker", "Mark engines that already report the version to be pushed."},
          {{VersionMarker::kAuto, "auto"},
           {VersionMarker::kAlways, "always"},
           {VersionMarker::kNever, "never"}},
          [](auto& c) -> auto& { return c.push.versionMarker; }),
      integerKey<C>(
          {"push.wave", "Engines resumed at a time; 0: all at once."},
          0,
          65536,
          [](auto& c) -> auto& { return c.push.wave; }),
      switchKey<C>(
          {"push.partial", "A push may lack names that an earlier one had."},
          [](auto& c) -> auto& { return c.push.partial; }),
      choiceKey<C, CheckReplicas>(
          {"push.check_replicas",
           "`digest`: ranks compare their copies of each gathered tensor (XXH3-64), before any "
           "version is published."},
          {{CheckReplicas::kOff, "off"}, {CheckReplicas::kDigest, "digest"}},
          [](auto& c) -> auto& { return c.push.checkReplicas; }),
  };
}

}  // namespace pushrod::config
