// SPDX-License-Identifier: Apache-2.0
// What a vote and the rank link cost at sizes that no machine here can run, counted over the trees
// that the product builds: every rank's place is asked for, nothing is estimated.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "ranks/link.h"
#include "ranks/tree_place.h"
#include "ranks/vote_tree.h"

namespace pushrod::ranks {
namespace {

struct Shape {
  int depth = 0;     ///< of the rank that is farthest from rank 0
  int busiest = 0;   ///< neighbours of the rank that has most
  int rankZero = 0;  ///< neighbours of rank 0
  double mean = 0;   ///< neighbours of a rank
};

Shape shapeOf(int size, int fanOut) {
  Shape shape;
  std::vector<int> depth(static_cast<std::size_t>(size), 0);
  for (int rank = 0; rank < size; ++rank) {
    const TreePlace place = TreePlace::of(rank, size, fanOut);
    if (place.parent >= 0) {
      depth[static_cast<std::size_t>(rank)] = depth[static_cast<std::size_t>(place.parent)] + 1;
    }
    const int neighbours = static_cast<int>(place.children.size()) + (place.parent >= 0 ? 1 : 0);
    shape.busiest = std::max(shape.busiest, neighbours);
    shape.rankZero = rank == 0 ? neighbours : shape.rankZero;
    shape.mean += static_cast<double>(neighbours) / size;
  }
  shape.depth = *std::max_element(depth.begin(), depth.end());
  return shape;
}

/// A vote goes up the tree and its verdict down again: one message each way per connection, of
/// which a rank sends one per neighbour.
void print(int size) {
  const Shape vote = shapeOf(size, VoteTree::kFanOut);
  const Shape link = shapeOf(size, Link::fanOut(size));
  const int ring = 2 * (size - 1);
  std::printf("%6d  %9d %9.2f %9d  %9d  %9d %9d %9d\n",
              size,
              2 * vote.depth,
              vote.mean,
              vote.busiest,
              ring,
              link.depth,
              link.rankZero,
              link.busiest);
}

}  // namespace
}  // namespace pushrod::ranks

int main() {
  std::printf(
      "        one vote: messages one after the other, then sent per rank; the rank link\n");
  std::printf("              tree                              ring           connections\n");
  std::printf(" ranks       hops      mean   busiest       hops       hops    rank 0   busiest\n");
  for (const int size : {8, 64, 1000, 10000}) {
    pushrod::ranks::print(size);
  }
  return 0;
}
