#include "numsim/data/internal/idx.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/io/array.h"

namespace numsim {
namespace {

constexpr std::byte kTypeUint8{0x08};
constexpr size_t kPieceBytes = size_t{1} << 20;

std::string_view TypeName(std::byte type) {
  switch (std::to_integer<int>(type)) {
    case 0x09:
      return "int8";
    case 0x0B:
      return "int16";
    case 0x0C:
      return "int32";
    case 0x0D:
      return "float32";
    case 0x0E:
      return "float64";
    default:
      return "unknown";
  }
}

void ReadHeaderBytes(ByteStream& stream, std::span<std::byte> bytes) {
  if (stream.Read(bytes) == bytes.size()) return;
  throw Error::Format("{}: ends within the idx header", stream.Path().string());
}

void CheckMagic(ByteStream& stream, size_t dimensions) {
  const std::string path = stream.Path().string();
  std::array<std::byte, 4> magic{};
  ReadHeaderBytes(stream, magic);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    throw Error::Format("{}: not an idx file: begins with bytes {:02x} {:02x}, expected 00 00",
                        path,
                        std::to_integer<int>(magic[0]),
                        std::to_integer<int>(magic[1]));
  }
  if (magic[2] != kTypeUint8) {
    throw Error::Format("{}: idx element type 0x{:02x} ({}), expected 0x08 (uint8)",
                        path,
                        std::to_integer<int>(magic[2]),
                        TypeName(magic[2]));
  }
  if (std::to_integer<size_t>(magic[3]) != dimensions) {
    throw Error::Format("{}: idx number of dimensions {}, expected {}",
                        path,
                        std::to_integer<int>(magic[3]),
                        dimensions);
  }
}

std::vector<size_t> ReadShape(ByteStream& stream, size_t dimensions) {
  std::vector<std::byte> bytes(4 * dimensions);
  ReadHeaderBytes(stream, bytes);
  std::vector<size_t> shape(dimensions);
  for (size_t i = 0; i < bytes.size(); ++i) {
    shape[i / 4] = shape[i / 4] << 8 | std::to_integer<size_t>(bytes[i]);
  }
  return shape;
}

// Returns the remaining bytes of the stream, up to `limit`.
std::vector<uint8_t> ReadUpTo(ByteStream& stream, uint64_t limit) {
  std::vector<uint8_t> bytes;
  while (bytes.size() < limit) {
    const size_t before = bytes.size();
    const size_t wanted = std::min<uint64_t>(limit - before, std::max(before, kPieceBytes));
    bytes.resize(before + wanted);
    const size_t got = stream.Read(std::as_writable_bytes(std::span(bytes).subspan(before)));
    bytes.resize(before + got);
    if (got < wanted) break;
  }
  return bytes;
}

}  // namespace

IdxArray ReadIdx(const std::filesystem::path& path, size_t dimensions) {
  NUMSIM_CHECK(dimensions >= 1 && dimensions <= 255, "{} dimensions", dimensions);
  ByteStream stream(path);
  CheckMagic(stream, dimensions);
  IdxArray array{ReadShape(stream, dimensions), {}};
  const std::string shape = ShapeToString(array.shape);
  const std::optional<size_t> elements = CheckedElements(array.shape, 8);
  if (!elements || *elements > kMaxIdxElements) {
    throw Error::Format("{}: idx dimensions {} are too large, expected at most {} elements",
                        path.string(),
                        shape,
                        kMaxIdxElements);
  }
  array.bytes = ReadUpTo(stream, *elements);
  if (array.bytes.size() < *elements) {
    throw Error::Format("{}: ends after {} bytes of idx data, expected {} for {}",
                        path.string(),
                        array.bytes.size(),
                        *elements,
                        shape);
  }
  std::byte surplus;
  if (stream.Read(std::span(&surplus, 1)) != 0) {
    throw Error::Format(
        "{}: more than the {} bytes of idx data expected for {}", path.string(), *elements, shape);
  }
  return array;
}

}  // namespace numsim
