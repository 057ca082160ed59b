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

// Returns the number of strips that a thread packs at a time: an equal share, unless that is more
// vectors than are worth packing in one call, or less work than is worth a thread.
inline size_t StripsAtATime(size_t strips, size_t width, size_t depth) {
  constexpr size_t kElementsOfThread = size_t{1} << 14;
  const size_t share = Strips(strips, static_cast<size_t>(ThreadCount()));
  const size_t least = kElementsOfThread / (width * std::max<size_t>(depth, 1));
  const size_t most = kPackElements / width;
  return std::max<size_t>(1, std::min(most, std::max(share, least)));
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
// processor's cache holds, and does not wait for others to pack. That is worth more than a share of
// the packing if that is fast, if each panel serves many rows, and if B's panels stay in the cache.
inline bool ThreadsPackAllOfB(bool copies, size_t rows, size_t bytes_b) {
  constexpr size_t kRowsOfThread = 512;
  const auto threads = static_cast<size_t>(ThreadCount());
  return copies && threads > 1 && rows >= kRowsOfThread * threads && bytes_b <= kReusedBytes;
}

// Computes the tiles of a rows x cols result. Calls store(place, sums) for each: the sums of its
// elements over the products of `segment`.
template <class Path, class Store>
void MultiplyTiles(Path& path, size_t rows, size_t cols, InnerRange segment, const Store& store) {
  using Packed = typename Path::Packed;
  using State = typename Path::State;
  const TileShape shape = path.shape;
  const size_t strips_a = Strips(rows, shape.rows), strips_b = Strips(cols, shape.cols);
  const bool one_block = segment.Size() <= path.block;
  State* const states =
      one_block ? nullptr : Scratch<State>(ScratchUse::kStates, strips_a * strips_b);
  const size_t most = std::min(path.block, segment.Size());
  const bool own = ThreadsPackTheirOwn(strips_a);
  const size_t room = kPanelBytes / sizeof(Packed) * (own ? 1 : static_cast<size_t>(ThreadCount()));
  const size_t group =
      std::clamp<size_t>(room / std::max<size_t>(1, path.PanelSize(shape.rows, most)), 1, strips_a);
  const auto scratch_a = [&] {
    return Scratch<Packed>(ScratchUse::kPanelsA, group * path.PanelSize(shape.rows, most));
  };
  Packed* const shared_b =
      Scratch<Packed>(ScratchUse::kPanelsB, strips_b * path.PanelSize(shape.cols, most));

  // Multiplies tiles [begin, end) of the order.
  const auto multiply = [&](const TileOrder& order,
                            const Packed* panels_a,
                            const Packed* panels_b,
                            InnerRange range,
                            size_t begin,
                            size_t end) {
    const size_t depth = range.Size(), from = range.begin - segment.begin;
    const size_t size_a = path.PanelSize(shape.rows, depth);
    const size_t size_b = path.PanelSize(shape.cols, depth);
    const typename Path::Environment environment;
    State local;
    for (size_t t = begin; t < end; ++t) {
      const size_t a = order.A(t), b = order.B(t);
      State& state = one_block ? local : states[a * strips_b + b];
      if (from == 0) path.Clear(state);
      const Packed* const panel_a = panels_a + (a - order.first) * size_a;
      path.Multiply(panel_a, panels_b + b * size_b, a, depth, from, state);
      if (range.end != segment.end) continue;
      const size_t row = a * shape.rows, col = b * shape.cols;
      const size_t height = std::min(shape.rows, rows - row);
      const size_t width = std::min(shape.cols, cols - col);
      store(TilePlace{row, col, height, width, shape.cols}, path.Finish(state));
    }
  };

  for (size_t k = segment.begin; k < segment.end; k += path.block) {
    const InnerRange range{k, std::min(k + path.block, segment.end)};
    const size_t depth = range.Size();
    const auto pack_a = [&](size_t s, size_t n, Packed* to) { path.PackA(s, n, range, to); };
    const auto pack_b = [&](size_t s, size_t n, Packed* to) { path.PackB(s, n, range, to); };
    const size_t size_b = path.PanelSize(shape.cols, depth);
    const size_t bytes_b = strips_b * size_b * sizeof(Packed);
    const bool own_b = own && ThreadsPackAllOfB(path.copies, rows, bytes_b);
    if (!own_b) PackStrips(path, 0, strips_b, shape.cols, depth, shared_b, pack_b);
    const auto order_of = [&](size_t first, size_t end) {
      return TileOrder{first, std::min(group, end - first), strips_b, bytes_b <= kReusedBytes};
    };
    if (own) {
      ParallelFor(strips_a, 1, [&](size_t first, size_t last) {
        Packed* const panels_a = scratch_a();
        Packed* const panels_b =
            own_b ? Scratch<Packed>(ScratchUse::kPanelsB, strips_b * size_b) : shared_b;
        const size_t size = path.PanelSize(shape.rows, depth);
        const size_t step = std::max<size_t>(1, kPackElements / shape.rows);
        const size_t step_b = std::max<size_t>(1, kPackElements / shape.cols);
        if (own_b) PackInTurn(0, strips_b, step_b, size_b, panels_b, pack_b);
        for (size_t s = first; s < last; s += group) {
          const TileOrder order = order_of(s, last);
          PackInTurn(s, s + order.count, step, size, panels_a, pack_a);
          multiply(order, panels_a, panels_b, range, 0, order.Tiles());
        }
      });
      continue;
    }
    Packed* const panels_a = scratch_a();
    for (size_t s = 0; s < strips_a; s += group) {
      const TileOrder order = order_of(s, strips_a);
      PackStrips(path, s, order.count, shape.rows, depth, panels_a, pack_a);
      ParallelFor(order.Tiles(), 1, [&](size_t begin, size_t end) {
        multiply(order, panels_a, shared_b, range, begin, end);
      });
    }
  }
}

}  // namespace numsim
