// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/tensor.h>

#include "engines/reference/kept_bytes.h"
#include "engines/reference/profile.h"

namespace pushrod::engines::reference {

/// One tensor with its digest instead of its bytes.
struct LoadedTensor {
  TensorSpec spec;
  std::string sha256;
  /// Only for parts of fused parameters, until their layer is rebuilt; null when over the budget.
  std::shared_ptr<const KeptBytes> bytes;
};

/// What a model holds before the first push.
struct InitialContent {
  std::vector<LoadedTensor> tensors;
  std::map<std::string, std::string> runtimeDigests;  ///< of fused parameters
  bool fixed = false;  ///< other names are refused, as by a server that loaded a checkpoint
};

/// One model's weights in one worker, rebuilt layer by layer as the contract's section 2 tells: a
/// layer is ready as soon as the number of elements received for it reaches its total, whatever
/// they were. Not thread-safe.
class Model {
 public:
  /// `wholeLists`: an update announces all that its session brings. Where it does not, and no
  /// checkpoint tells what belongs to a layer, layers are rebuilt when the session ends.
  Model(const Profile& profile, const InitialContent& initial, bool wholeLists = true);

  /// What the constructor was told has changed: with several sources an update brings a part.
  void setWholeLists(bool wholeLists) { wholeLists_ = wholeLists; }

  /// A session begins: parameters become placeholders.
  void begin();
  /// Learns names that an update announces where no checkpoint fixed them.
  void declare(const TensorSpec& spec);
  /// Takes one tensor; a text when the engine refuses it.
  [[nodiscard]] std::optional<std::string> accept(const LoadedTensor& tensor);
  /// A session ends well: untouched layers get their old tensors back, half loaded ones are taken
  /// as they are, with the missing part uninitialised.
  void finish();
  /// Sets every parameter to zero.
  void zero();

  /// Whether parameters are placeholders: generation would kill the engine.
  [[nodiscard]] bool placeholders() const { return placeholders_; }

  /// Whether the parameters are not all of one push.
  [[nodiscard]] bool torn() const;
  [[nodiscard]] std::map<std::string, std::string> digests() const;
  /// Block name -> "old", "mixed" or "new", against the last push that brought something.
  [[nodiscard]] std::map<std::string, std::string> layers() const;
  /// Digest per runtime (fused) parameter; an empty one could not be computed.
  [[nodiscard]] std::map<std::string, std::string> runtimeDigests() const;

 private:
  struct Module {
    std::string block;
    bool fused = false;
    std::vector<std::string> names;
    std::int64_t total = 0;
    std::int64_t received = 0;
    std::map<std::string, LoadedTensor> pieces;
    std::optional<std::string> poison;  ///< a buffered tensor of a wrong shape, as its error text
    std::uint64_t generation = 0;
    bool mixed = false;
    std::map<std::string, std::string> runtime;
  };

  void add(const TensorSpec& spec);

  /// Whether layers wait for the session's end.
  [[nodiscard]] bool waits() const { return !wholeLists_ && !fixed_; }

  void rebuild(Module& module);
  void computeRuntime(Module& module);
  [[nodiscard]] std::uint64_t latest() const;
  [[nodiscard]] std::string unknownName(const std::string& name) const;

  Profile profile_;
  bool wholeLists_ = true;
  bool fixed_ = false;
  bool sealed_ = false;
  bool placeholders_ = false;
  std::uint64_t generation_ = 0;
  std::map<std::string, LoadedTensor> tensors_;
  std::map<std::string, Module> modules_;
};

}  // namespace pushrod::engines::reference
