// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace pushrod::ranks {

/// Which ranks a rank talks to in a tree of a job's ranks: rank 0 is the root, at most `fanOut`
/// below each. With a fan-out of at least `size` - 1 the tree is a star.
struct TreePlace {
  int parent = -1;  ///< -1 at the root
  std::vector<int> children;

  static TreePlace of(int rank, int size, int fanOut);
};

/// Levels below `rank`: 0 for one that has nobody below it.
[[nodiscard]] int levelsBelow(int rank, int size, int fanOut);

/// Whether `rank` is `top` or a rank somewhere below it.
[[nodiscard]] bool inSubtree(int rank, int top, int fanOut);

}  // namespace pushrod::ranks
