// SPDX-License-Identifier: Apache-2.0
#include "ranks/tree_place.h"

#include <algorithm>
#include <cstdint>

namespace pushrod::ranks {

TreePlace TreePlace::of(int rank, int size, int fanOut) {
  TreePlace place;
  if (rank > 0) {
    place.parent = (rank - 1) / fanOut;
  }
  const std::int64_t first = std::int64_t{rank} * fanOut + 1;
  const std::int64_t end = std::min<std::int64_t>(first + fanOut, size);
  for (std::int64_t child = first; child < end; ++child) {
    place.children.push_back(static_cast<int>(child));
  }
  return place;
}

int levelsBelow(int rank, int size, int fanOut) {
  int levels = 0;
  // The first child of each has the most below it.
  for (std::int64_t below = std::int64_t{rank} * fanOut + 1; below < size;
       below = below * fanOut + 1) {
    ++levels;
  }
  return levels;
}

bool inSubtree(int rank, int top, int fanOut) {
  while (rank > top) {
    rank = (rank - 1) / fanOut;
  }
  return rank == top;
}

}  // namespace pushrod::ranks
