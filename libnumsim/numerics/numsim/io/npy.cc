#include "numsim/io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/require.h"
#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/io/internal/file_headers.h"

namespace numsim {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDictBytes = size_t{1} << 20;
constexpr size_t kAlignment = 64;
constexpr bool kLittleEndian = std::endian::native == std::endian::little;

// The type of an element, and NumPy's kind and size in bytes. NumPy writes e5m2 of ml_dtypes as f1,
// its other formats of 8 bits and less as V1, and bfloat16 as V2.
struct TypeName {
  ElementType type;
  std::string_view code;
};
constexpr std::array kTypeNames = {
    TypeName{ElementType::kF16, "f2"},
    TypeName{ElementType::kF32, "f4"},
    TypeName{ElementType::kF64, "f8"},
    TypeName{ElementType::kI8, "i1"},
    TypeName{ElementType::kI16, "i2"},
    TypeName{ElementType::kI32, "i4"},
    TypeName{ElementType::kI64, "i8"},
    TypeName{ElementType::kU8, "u1"},
    TypeName{ElementType::kU16, "u2"},
    TypeName{ElementType::kU32, "u4"},
    TypeName{ElementType::kU64, "u8"},
    TypeName{ElementType::kRaw8, "f1"},
    TypeName{ElementType::kRaw8, "V1"},
    TypeName{ElementType::kRaw16, "V2"},
};

bool IsRaw(ElementType type) { return type == ElementType::kRaw8 || type == ElementType::kRaw16; }

// Sets the header's type and byte order from a text like "<f4".
void ParseDescr(std::string_view descr, std::string_view file, NpyHeader& header) {
  const char order = descr.empty() ? '\0' : descr[0];
  for (const TypeName& name : kTypeNames) {
    if (descr.substr(descr.empty() ? 0 : 1) != name.code) continue;
    const bool one_byte = ElementBytes(name.type) == 1;
    const bool without_order = one_byte || name.code.starts_with('V');
    if (order != '<' && order != '>' && order != '=' && !(without_order && order == '|')) break;
    header.type = name.type;
    header.reversed_bytes = !one_byte && order == (kLittleEndian ? '>' : '<');
    return;
  }
  throw Error::Format(
      "{}: npy header: descr is '{}', expected float16, float32, float64, int8 to int64 or uint8 to "
      "uint64 ('<f4' and so on), or bytes of a format that NumPy does not know ('<f1', '|V1', '|V2')",
      file,
      Printable(descr, 24));
}

// The number of bytes before the dict, and the length of the dict.
struct Preamble {
  size_t bytes;
  size_t dict_bytes;
};

Preamble ReadPreamble(const InputFile& file) {
  const std::string path = file.Path().string();
  std::array<unsigned char, 12> head{};
  const size_t available = std::min<uint64_t>(head.size(), file.Size());
  file.Read(0, std::as_writable_bytes(std::span(head)).first(available));
  if (available < kMagic.size() || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    throw Error::Format("{}: not a .npy file: does not begin with \\x93NUMPY", path);
  }
  const int major = available > 6 ? head[6] : 0;
  const int minor = available > 7 ? head[7] : 0;
  if (major < 1 || major > 3 || minor != 0) {
    throw Error::Format("{}: npy version {}.{}, expected 1.0, 2.0 or 3.0", path, major, minor);
  }
  const size_t preamble = major == 1 ? 10 : 12;
  if (available < preamble) throw Error::Format("{}: ends within the npy header", path);
  size_t dict_bytes = head[8] | size_t{head[9]} << 8;
  if (major > 1) dict_bytes |= size_t{head[10]} << 16 | size_t{head[11]} << 24;
  if (dict_bytes > kMaxDictBytes) {
    throw Error::Format(
        "{}: npy header of {} bytes, expected at most {}", path, dict_bytes, kMaxDictBytes);
  }
  if (dict_bytes > file.Size() - preamble) {
    throw Error::Format("{}: npy header of {} bytes goes beyond the file's end", path, dict_bytes);
  }
  return {preamble, dict_bytes};
}

NpyHeader ReadHeader(const InputFile& file) {
  const std::string path = file.Path().string();
  const Preamble preamble = ReadPreamble(file);
  std::string text(preamble.dict_bytes, '\0');
  file.Read(preamble.bytes, std::as_writable_bytes(std::span(text)));
  NpyDict dict = ParseNpyDict(text, path);

  NpyHeader header;
  ParseDescr(dict.descr, path, header);
  header.fortran_order = dict.fortran_order;
  header.shape = std::move(dict.shape);
  header.data_offset = preamble.bytes + preamble.dict_bytes;

  const size_t element_bytes = ElementBytes(header.type);
  const auto elements = CheckedElements(header.shape, 8 * element_bytes);
  if (!elements) {
    throw Error::Format(
        "{}: npy header: shape {} is too large", path, Printable(ShapeToString(header.shape)));
  }
  const uint64_t expected = *elements * element_bytes;
  const uint64_t found = file.Size() - header.data_offset;
  if (found != expected) {
    throw Error::Format("{}: {} bytes of data, expected {} for {} {}",
                        path,
                        found,
                        expected,
                        ToString(header.type),
                        Printable(ShapeToString(header.shape)));
  }
  return header;
}

// Copies elements of kBytes each from Fortran order (last index slowest) to C order.
template <size_t kBytes>
void CopyFortranToC(const std::vector<size_t>& shape, const std::byte* source, std::byte* target) {
  const size_t last = shape.size() - 1;
  std::vector<size_t> strides(shape.size());  // of `source`, in elements
  size_t elements = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = elements;
    elements *= shape[axis];
  }
  if (elements == 0) return;
  std::vector<size_t> index(shape.size(), 0);
  size_t row = 0;  // offset of the element with last index 0
  for (;;) {
    for (size_t i = 0; i < shape[last]; ++i, target += kBytes) {
      std::memcpy(target, source + (row + i * strides[last]) * kBytes, kBytes);
    }
    size_t axis = last;
    for (;;) {  // steps to the next row
      if (axis == 0) return;
      --axis;
      row += strides[axis];
      if (++index[axis] < shape[axis]) break;
      row -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

std::vector<std::byte> TransposedToC(const Array& array) {
  std::vector<std::byte> result(array.bytes.size());
  const auto copy = [&]<size_t kBytes>() {
    CopyFortranToC<kBytes>(array.shape, array.bytes.data(), result.data());
  };
  switch (ElementBytes(array.type)) {
    case 1:
      copy.operator()<1>();
      break;
    case 2:
      copy.operator()<2>();
      break;
    case 4:
      copy.operator()<4>();
      break;
    default:
      copy.operator()<8>();
      break;
  }
  return result;
}

std::string DescrOf(ElementType type, const std::filesystem::path& path) {
  for (const TypeName& name : kTypeNames) {
    if (name.type != type || IsRaw(type)) continue;
    const char order = ElementBytes(type) == 1 ? '|' : kLittleEndian ? '<' : '>';
    return order + std::string(name.code);
  }
  throw Error::Format(
      "{}: .npy has no element type for {}; write codes or float32", path.string(), ToString(type));
}

// Returns the magic, version, length and padded dict.
std::string HeaderBytes(const NpyDict& dict) {
  std::string text = NpyDictText(dict);
  // Like NumPy, leaves room for the first extent (in Fortran order the last) to grow to 21 digits.
  if (!dict.shape.empty()) text.append(21 - std::to_string(dict.shape.front()).size(), ' ');
  size_t preamble = 10;
  const auto padded_size = [&] {
    const size_t used = preamble + text.size() + 1;
    return (used / kAlignment + 1) * kAlignment - preamble;  // at least one blank, like NumPy
  };
  size_t dict_bytes = padded_size();
  const bool version2 = dict_bytes > 0xFFFF;
  if (version2) {
    preamble = 12;
    dict_bytes = padded_size();
  }
  text.resize(dict_bytes - 1, ' ');
  text += '\n';

  std::string result(kMagic);
  result += version2 ? '\2' : '\1';
  result += '\0';
  for (size_t byte = 0; byte < preamble - 8; ++byte) {
    result += static_cast<char>(dict_bytes >> (8 * byte) & 0xFF);
  }
  return result + text;
}

}  // namespace

NpyHeader ReadNpyHeader(const std::filesystem::path& path) { return ReadHeader(InputFile(path)); }

Array ReadNpy(const std::filesystem::path& path) {
  const InputFile file(path);
  NpyHeader header = ReadHeader(file);
  Array array{header.type, std::move(header.shape), {}};
  array.bytes.resize(file.Size() - header.data_offset);
  file.Read(header.data_offset, array.bytes);
  if (header.reversed_bytes) ReverseBytesOfElements(array.bytes, ElementBytes(array.type));
  if (header.fortran_order && array.shape.size() > 1) array.bytes = TransposedToC(array);
  return array;
}

void AppendNpy(const std::filesystem::path& path, const Array& array, AtomicFile& file) {
  NUMSIM_REQUIRE(array.bytes.size() == array.Elements() * ElementBytes(array.type),
                 "WriteNpy: {} bytes do not make an array of {} {}",
                 array.bytes.size(),
                 ToString(array.type),
                 ShapeToString(array.shape));
  file.Write(HeaderBytes({DescrOf(array.type, path), false, array.shape}));
  file.Write(array.bytes);
}

void WriteNpy(const std::filesystem::path& path, const Array& array) {
  AtomicFile file(path);
  AppendNpy(path, array, file);
  file.Commit();
}

}  // namespace numsim
