// Matrices in the memory of the host or of a device: views, and buffers that own memory.
//
// Operations take views. A view records where its data are stored, and the operation runs there, so
// layers and models need not mention it. What an operation needs on a device besides its arguments
// (a stream, scratch memory, handles of libraries) it finds from the view, in DeviceContext.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "numsim/base/matrix_shape.h"
#include "numsim/base/require.h"

namespace numsim {

class DeviceContext;
class DeviceStream;

// The memory in which data are stored: the host's, or that of a device, used in the order of the
// context's stream. The context must outlive the place.
class Place {
 public:
  constexpr Place() = default;  // the host
  explicit constexpr Place(DeviceContext& context) : context_(&context) {}

  // Returns true for the host's memory.
  constexpr bool IsHost() const { return context_ == nullptr; }
  // Require a device; throw Error on the host.
  DeviceContext& Context() const;
  DeviceStream& Stream() const;

  friend constexpr bool operator==(const Place&, const Place&) = default;

 private:
  DeviceContext* context_ = nullptr;
};

// Returns "host" or "device".
const char* ToString(Place place);

// Throws Error "OPERATION: ..." about two places that are not one.
[[noreturn]] void RefusePlaces(const char* operation, Place first, Place other);

// Throws Error "OPERATION: ..." unless all places are one. Returns it.
inline Place OnePlace(const char* operation, std::initializer_list<Place> places) {
  const Place first = *places.begin();
  for (const Place place : places) {
    if (place != first) RefusePlaces(operation, first, place);
  }
  return first;
}

// Throws Error "OPERATION has no kernel for a device yet" unless all places are the host.
void RequireHost(const char* operation, std::initializer_list<Place> places);

// A view of a row-major matrix owned by somebody else. A vector is a matrix with one row.
template <typename T>
struct MatrixSpan {
  T* data = nullptr;  // an address of `place`: not to be read by the host if that is a device
  size_t rows = 0, cols = 0;
  size_t stride = 0;  // elements from one row to the next, >= cols
  Place place;

  MatrixSpan() = default;
  MatrixSpan(T* begin, size_t height, size_t length, size_t step, Place where = {})
      : data(begin), rows(height), cols(length), stride(step), place(where) {}
  MatrixSpan(T* begin, size_t height, size_t length) : MatrixSpan(begin, height, length, length) {}
  // A contiguous matrix.
  MatrixSpan(T* begin, MatrixShape shape, Place where = {})
      : MatrixSpan(begin, shape.rows, shape.cols, shape.cols, where) {}
  // A vector of the host.
  MatrixSpan(T* begin, size_t elements) : MatrixSpan(begin, 1, elements) {}
  // A vector of the host: std::vector, std::span, std::array.
  template <typename Values>
  requires(std::is_convertible_v<Values&, std::span<T>>)  //
      MatrixSpan(Values& values)
      : MatrixSpan(std::span<T>(values).data(), 1, std::span<T>(values).size()) {}
  template <typename Values>
  requires(std::is_convertible_v<const Values&, std::span<T>>)  //
      MatrixSpan(const Values& values)
      : MatrixSpan(std::span<T>(values).data(), 1, std::span<T>(values).size()) {}
  // Converts a mutable view to a read-only one.
  template <typename U>
  requires(std::is_same_v<const U, T>) MatrixSpan(const MatrixSpan<U>& other)
      : MatrixSpan(other.data, other.rows, other.cols, other.stride, other.place) {}

  // The number of elements, the shape, whether the rows have no gaps between them, the bytes of all elements, and views
  // of one row and of `count` rows.
  size_t Elements() const { return rows * cols; }
  bool Empty() const { return Elements() == 0; }
  MatrixShape Shape() const { return {rows, cols}; }
  bool Contiguous() const { return stride == cols || rows <= 1; }
  size_t Bytes() const { return Elements() * sizeof(T); }
  T* Row(size_t row) const { return data + row * stride; }
  MatrixSpan Rows(size_t begin, size_t count) const {
    return {data + begin * stride, count, cols, stride, place};
  }
  // Returns the view of `count` columns.
  MatrixSpan Columns(size_t begin, size_t count) const {
    return {data + begin, rows, count, stride, place};
  }
  // Returns a view of the same elements with another shape. Requires Contiguous() and the same
  // number of elements.
  MatrixSpan As(size_t new_rows, size_t new_cols) const {
    NUMSIM_REQUIRE(Contiguous() && new_rows * new_cols == Elements(),
                   "As: {} x {} of a {} x {} matrix with stride {}",
                   new_rows,
                   new_cols,
                   rows,
                   cols,
                   stride);
    return {data, new_rows, new_cols, new_cols, place};
  }
  // Returns all elements as a span. Requires a contiguous matrix on the host.
  std::span<T> Span() const {
    NUMSIM_REQUIRE(Contiguous() && place.IsHost(),
                   "Span: {} x {} elements with stride {} on the {}",
                   rows,
                   cols,
                   stride,
                   ToString(place));
    return {data, Elements()};
  }
};

// An input of an operation. T is deduced from the output, not from the input.
template <typename T>
using In = MatrixSpan<const std::type_identity_t<T>>;
using IndexRef = MatrixSpan<const int32_t>;  // a column of indices: rows x 1

// Returns contiguous host values, in a vector or span that outlives the view, as a matrix. Throws
// Error if their number is not that of the shape.
template <std::ranges::borrowed_range Values>
auto HostMatrix(Values&& values, MatrixShape shape) {
  const std::span view(values);
  RequireSize(view.size(), shape, "HostMatrix", "values");
  return MatrixSpan<typename decltype(view)::element_type>(view.data(), shape);
}

// Owns the memory of one matrix at a time, at a place: aligned to 64 bytes on the host, to 256 on a
// device. The memory grows and never shrinks. A copy has memory of its own. After
// Buffer b = std::move(a), a is empty and can be used again; b = std::move(a) exchanges the two.
template <typename T>
class Buffer {
 public:
  Buffer() : Buffer(Place()) {}
  explicit Buffer(Place place) { view_.place = place; }
  // One row of `size` uninitialised elements.
  Buffer(Place place, size_t size) : Buffer(place) { Resize(1, size); }
  ~Buffer();
  // A copy has memory of its own; a move takes the memory, and a move assignment exchanges it.
  Buffer(const Buffer& other);
  Buffer& operator=(const Buffer& other);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // Returns the place of the memory.
  Place place() const { return view_.place; }
  // Replaces the buffer by an empty one, unless it is at that place.
  void EnsureAt(Place place) {
    if (view_.place != place) *this = Buffer(place);
  }
  // Lets the buffer use memory of somebody else, which must live as long as the buffer uses it. A
  // later Resize to more elements throws Error.
  void Borrow(MatrixSpan<T> memory);
  // Returns a contiguous view of rows x cols elements. Existing elements keep their values in
  // memory order; further elements are uninitialised. Allocates only if the current memory is too
  // small.
  MatrixSpan<T> Resize(size_t rows, size_t cols);
  // Does the same, but every element is uninitialised. If the memory is too small, frees it before
  // it allocates: a device may not have room for both.
  MatrixSpan<T> Renew(size_t rows, size_t cols);
  // The same for one row.
  MatrixSpan<T> Renew(size_t size) { return Renew(1, size); }
  // Returns the view of the last Resize.
  MatrixSpan<T> View() { return view_; }
  MatrixSpan<const T> View() const { return view_; }
  // Returns the elements. Requires the host.
  std::span<T> Span() { return view_.Span(); }
  std::span<const T> Span() const { return View().Span(); }

 private:
  // Throws Error if the memory is of another owner.
  void RequireOwned(size_t elements) const;
  void Allocate(size_t elements);

  MatrixSpan<T> view_;
  size_t capacity_ = 0;
  bool borrowed_ = false;
};

// Copies a contiguous matrix to another one with as many elements of the same size, between the
// host and a device or within one place. Returns when host memory may be read or used again. Throws
// Error for other matrices, and for two contexts of a device.
template <typename T>
void CopyMatrix(In<T> from, MatrixSpan<T> to);

// Returns a buffer at that place with the elements of a contiguous matrix, under the conditions of
// CopyMatrix.
template <typename T>
Buffer<std::remove_const_t<T>> CopyAt(MatrixSpan<T> from, Place place) {
  using Value = std::remove_const_t<T>;
  Buffer<Value> to(place);
  CopyMatrix<Value>(from, to.Resize(from.rows, from.cols));
  return to;
}
// Does the same for a vector of the host.
template <typename T>
Buffer<T> CopyAt(const std::vector<T>& values, Place place) {
  return CopyAt(MatrixSpan<const T>(values), place);
}

// Returns the elements of a contiguous matrix in host memory. Waits for the device.
template <typename T>
std::vector<std::remove_const_t<T>> ToVector(MatrixSpan<T> matrix) {
  using Value = std::remove_const_t<T>;
  std::vector<Value> values(matrix.Elements());
  CopyMatrix<Value>(matrix, {values.data(), matrix.rows, matrix.cols});
  return values;
}

}  // namespace numsim
