// GEMM tile by tile: the loops that all tile kernels share.
//
// The inner dimension is processed in blocks that fit the caches. For each block, both operands are
// packed into panels, and then every tile adds the block's products to its state. A tile belongs to
// one thread within a block and takes its products in order of k, so the bits do not depend on the
// number of threads.
//
// A path is one way of adding products up. It has
//   types Packed, State, Result
//   type Environment         what a thread needs while it multiplies tiles: constructed before the
//                            first and destroyed after the last of them
//   size_t block             elements of the inner dimension that are packed at a time
//   bool copies              packing B is little more than copying
//   TileShape shape
//   size_t PanelSize(width, depth)               Packed elements in the panel of one strip
//   void PackA(first, count, range, panels)      panels of strips [first, first + count)
//   void PackB(first, count, range, panels)
//   void Clear(state)                            starts an empty sum
//   void Multiply(a, b, strip, depth, from, state)   adds `depth` products of two panels; A's is
//                                                that of strip `strip`, and the first product is
//                                                number `from` of the segment
//   const Result* Finish(state)                  returns the tile of sums
#pragma once

#include <algorithm>

#include "numsim/base/parallel.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_scratch.h"
#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {

// Returns the number of strips of `width` vectors that hold n vectors.
inline size_t Strips(size_t n, size_t width) { return (n + width - 1) / width; }

// Returns the most strips that are worth packing in one call.
inline size_t MostStripsAtATime(size_t width) { return std::max<size_t>(1, kPackElements / width); }

// Returns the number of strips that a thread packs at a time: an equal share, unless that is more
// vectors than are worth packing in one call, or less work than is worth a thread.
inline size_t StripsAtATime(size_t strips, size_t width, size_t depth) {
  constexpr size_t kElementsOfThread = size_t{1} << 14;
  const size_t share = Strips(strips, static_cast<size_t>(ThreadCount()));
  const size_t least = kElementsOfThread / (width * std::max<size_t>(depth, 1));
  return std::max<size_t>(1, std::min(MostStripsAtATime(width), std::max(share, least)));
}

// Packs strips [begin, end), at most `step` in one call of pack(first, count, panels). The panel of
// strip `begin` comes first.
template <class Packed, class Pack>
void PackInTurn(
    size_t begin, size_t end, size_t step, size_t size, Packed* panels, const Pack& pack) {
  for (size_t s = begin; s < end; s += step) {
    pack(s, std::min(step, end - s), panels + (s - begin) * size);
  }
}

// Packs strips [first, first + count) on all threads.
template <class Path, class Pack>
void PackStrips(const Path& path,
                size_t first,
                size_t count,
                size_t width,
                size_t depth,
                typename Path::Packed* panels,
                const Pack& pack) {
  const size_t size = path.PanelSize(width, depth);
  const size_t step = StripsAtATime(count, width, depth);
  ParallelFor(count, step, [&](size_t begin, size_t end) {
    PackInTurn(first + begin, first + end, step, size, panels + begin * size, pack);
  });
}

// The place of a tile in the result: elements [row, row + rows) x [col, col + cols). Rows of its
// sums are `stride` elements apart.
struct TilePlace {
  size_t row, col;
  size_t rows, cols;
  size_t stride;
};

// Bytes of panels per thread that are multiplied before others replace them: they stay in the
// thread's second-level cache.
inline constexpr size_t kPanelBytes = size_t{1} << 19;

// Bytes of panels of B that a thread reads again and again from its second-level cache or the
// processor's.
inline constexpr size_t kReusedBytes = size_t{1} << 21;

// The order of the tiles of `count` strips of A from strip `first` on. If all of B is read from a
// cache, neighbouring tiles share the panel of A, so that the result is written row by row;
// otherwise they share the panel of B.
struct TileOrder {
  size_t first, count, strips_b;
  bool shares_a;

  size_t Tiles() const { return count * strips_b; }
  size_t A(size_t t) const { return first + (shares_a ? t / strips_b : t % count); }
  size_t B(size_t t) const { return shares_a ? t % strips_b : t / count; }
};

// Returns whether every thread is to pack the strips of A whose tiles it computes. That saves two
// parallel loops per group of strips, in each of which threads wait for each other: tens of
// microseconds where idle threads sleep. With few strips per thread, shares would be too unequal, and
// each thread would read all of B for few rows.
inline bool ThreadsPackTheirOwn(size_t strips_a) {
  constexpr size_t kStripsOfThread = 8;
  const auto threads = static_cast<size_t>(ThreadCount());
  return threads == 1 || strips_a >= kStripsOfThread * threads;
}

// Returns whether every thread is to pack all of B, too. It then multiplies by panels that no other
// core's cache holds, and does not wait for others to pack. That is worth more than a share of
// the packing if that is fast, if each panel serves many rows, and if B's panels stay in the cache.
inline bool ThreadsPackAllOfB(bool copies, size_t rows, size_t bytes_b) {
  constexpr size_t kRowsOfThread = 512;
  const auto threads = static_cast<size_t>(ThreadCount());
  return copies && threads > 1 && rows >= kRowsOfThread * threads && bytes_b <= kReusedBytes;
}

// The tiles of one segment of a product.
template <class Path, class Store>
class TileProduct {
  using Packed = typename Path::Packed;
  using State = typename Path::State;

 public:
  TileProduct(Path& path, size_t rows, size_t cols, InnerRange segment, const Store& store)
      : path_(path),
        store_(store),
        rows_(rows),
        cols_(cols),
        segment_(segment),
        deepest_(std::min(path.block, segment.Size())),
        strips_a_(Strips(rows, path.shape.rows)),
        strips_b_(Strips(cols, path.shape.cols)),
        own_(ThreadsPackTheirOwn(strips_a_)),
        group_(GroupSize()),
        states_(segment.Size() == deepest_
                    ? nullptr
                    : Scratch<State>(ScratchUse::kStates, strips_a_ * strips_b_)) {}

  void Compute() const {
    for (size_t k = segment_.begin; k < segment_.end; k += path_.block) {
      const InnerRange block{k, std::min(k + path_.block, segment_.end)};
      if (own_) {
        MultiplyOwnStrips(block);
      } else {
        MultiplySharedStrips(block);
      }
    }
  }

 private:
  size_t PanelSizeA(size_t depth) const { return path_.PanelSize(path_.shape.rows, depth); }
  size_t PanelSizeB(size_t depth) const { return path_.PanelSize(path_.shape.cols, depth); }
  size_t BytesOfB(InnerRange block) const {
    return strips_b_ * PanelSizeB(block.Size()) * sizeof(Packed);
  }
  Packed* PanelsA() const {
    return Scratch<Packed>(ScratchUse::kPanelsA, group_ * PanelSizeA(deepest_));
  }

  // Returns the number of strips of A that are packed before their tiles are multiplied.
  size_t GroupSize() const {
    const size_t threads = own_ ? 1 : static_cast<size_t>(ThreadCount());
    const size_t room = kPanelBytes / sizeof(Packed) * threads;
    return std::clamp<size_t>(room / std::max<size_t>(1, PanelSizeA(deepest_)), 1, strips_a_);
  }

  // Returns the order of the tiles of the group of strips from `first` on, which ends before `end`.
  TileOrder OrderOf(size_t first, size_t end, InnerRange block) const {
    return {first, std::min(group_, end - first), strips_b_, BytesOfB(block) <= kReusedBytes};
  }

  auto PackA(InnerRange block) const {
    return [this, block](size_t s, size_t n, Packed* to) { path_.PackA(s, n, block, to); };
  }
  auto PackB(InnerRange block) const {
    return [this, block](size_t s, size_t n, Packed* to) { path_.PackB(s, n, block, to); };
  }

  // Packs B on all threads.
  const Packed* SharedB(InnerRange block) const {
    Packed* const panels = Scratch<Packed>(ScratchUse::kPanelsB, strips_b_ * PanelSizeB(deepest_));
    PackStrips(path_, 0, strips_b_, path_.shape.cols, block.Size(), panels, PackB(block));
    return panels;
  }
  // Packs B on this thread, in memory of its own.
  const Packed* OwnB(InnerRange block) const {
    const size_t size = PanelSizeB(block.Size());
    Packed* const panels = Scratch<Packed>(ScratchUse::kPanelsB, strips_b_ * size);
    const size_t step = MostStripsAtATime(path_.shape.cols);
    PackInTurn(0, strips_b_, step, size, panels, PackB(block));
    return panels;
  }

  // Every thread packs the strips of A that it multiplies.
  void MultiplyOwnStrips(InnerRange block) const {
    const Packed* const shared_b =
        ThreadsPackAllOfB(path_.copies, rows_, BytesOfB(block)) ? nullptr : SharedB(block);
    const size_t step = MostStripsAtATime(path_.shape.rows);
    ParallelFor(strips_a_, 1, [&](size_t first, size_t last) {
      const Packed* const panels_b = shared_b != nullptr ? shared_b : OwnB(block);
      Packed* const panels_a = PanelsA();
      for (size_t s = first; s < last; s += group_) {
        const TileOrder order = OrderOf(s, last, block);
        const size_t size = PanelSizeA(block.Size());
        PackInTurn(s, s + order.count, step, size, panels_a, PackA(block));
        MultiplyRange(order, panels_a, panels_b, block, 0, order.Tiles());
      }
    });
  }

  // All threads pack a group of strips of A, and then share its tiles.
  void MultiplySharedStrips(InnerRange block) const {
    const Packed* const panels_b = SharedB(block);
    Packed* const panels_a = PanelsA();
    for (size_t s = 0; s < strips_a_; s += group_) {
      const TileOrder order = OrderOf(s, strips_a_, block);
      const size_t width = path_.shape.rows;
      PackStrips(path_, s, order.count, width, block.Size(), panels_a, PackA(block));
      ParallelFor(order.Tiles(), 1, [&](size_t begin, size_t end) {
        MultiplyRange(order, panels_a, panels_b, block, begin, end);
      });
    }
  }

  // Multiplies tiles [begin, end) of the order, and stores them after the last block.
  void MultiplyRange(const TileOrder& order,
                     const Packed* panels_a,
                     const Packed* panels_b,
                     InnerRange block,
                     size_t begin,
                     size_t end) const {
    const size_t depth = block.Size(), from = block.begin - segment_.begin;
    const size_t size_a = PanelSizeA(depth), size_b = PanelSizeB(depth);
    const typename Path::Environment environment;
    State local;
    for (size_t t = begin; t < end; ++t) {
      const size_t a = order.A(t), b = order.B(t);
      State& state = states_ == nullptr ? local : states_[a * strips_b_ + b];
      if (from == 0) path_.Clear(state);
      const Packed* const panel_a = panels_a + (a - order.first) * size_a;
      path_.Multiply(panel_a, panels_b + b * size_b, a, depth, from, state);
      if (block.end == segment_.end) store_(PlaceOf(a, b), path_.Finish(state));
    }
  }

  TilePlace PlaceOf(size_t a, size_t b) const {
    const TileShape shape = path_.shape;
    const size_t row = a * shape.rows, col = b * shape.cols;
    const size_t height = std::min(shape.rows, rows_ - row);
    const size_t width = std::min(shape.cols, cols_ - col);
    return {row, col, height, width, shape.cols};
  }

  Path& path_;
  const Store& store_;
  size_t rows_, cols_;
  InnerRange segment_;
  size_t deepest_;  // elements of the longest block
  size_t strips_a_, strips_b_;
  bool own_;
  size_t group_;
  State* states_;  // of all tiles, null if there is a single block
};

// Computes the tiles of a rows x cols result. Calls store(place, sums) for each: the sums of its
// elements over the products of `segment`.
template <class Path, class Store>
void MultiplyTiles(Path& path, size_t rows, size_t cols, InnerRange segment, const Store& store) {
  TileProduct<Path, Store>(path, rows, cols, segment, store).Compute();
}

}  // namespace numsim
