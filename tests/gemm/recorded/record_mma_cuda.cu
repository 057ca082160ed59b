// Products of E4M3 codes by mma.sync.m16n8k32, which is another unit than that of cuBLASLt's
// kernels.
//
//   record_mma M N K A B OUT   reads M x K and N x K codes, writes M x N float32, row-major
//
// Each warp makes a 16 x 8 tile, from C = 0, 32 products at a time. Requires M a multiple of 16, N
// of 8, K of 32.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

__global__ void Tiles(const uint8_t* a, const uint8_t* b, float* out, int n, int k) {
  const int lane = threadIdx.x, group = lane / 4, in_group = lane % 4;
  const uint8_t* rows = a + size_t{blockIdx.x} * 16 * k;
  const uint8_t* cols = b + size_t{blockIdx.y} * 8 * k;
  float c[4] = {};
  for (int k0 = 0; k0 < k; k0 += 32) {
    const auto word = [&](const uint8_t* from, int row, int at) {
      return *reinterpret_cast<const uint32_t*>(from + size_t(row) * k + k0 + at);
    };
    const uint32_t a0 = word(rows, group, 4 * in_group);
    const uint32_t a1 = word(rows, group + 8, 4 * in_group);
    const uint32_t a2 = word(rows, group, 16 + 4 * in_group);
    const uint32_t a3 = word(rows, group + 8, 16 + 4 * in_group);
    const uint32_t b0 = word(cols, group, 4 * in_group);
    const uint32_t b1 = word(cols, group, 16 + 4 * in_group);
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  for (int i = 0; i < 4; ++i) {
    const size_t row = size_t{blockIdx.x} * 16 + group + i / 2 * 8;
    out[row * n + blockIdx.y * 8 + in_group * 2 + i % 2] = c[i];
  }
}

std::vector<uint8_t> Read(const char* path, size_t size) {
  std::vector<uint8_t> bytes(size);
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr || std::fread(bytes.data(), 1, size, file) != size) std::exit(2);
  std::fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  const std::vector<uint8_t> a = Read(argv[4], size_t(m) * k), b = Read(argv[5], size_t(n) * k);
  uint8_t *device_a, *device_b;
  float* device_out;
  CHECK(cudaMalloc(&device_a, a.size()));
  CHECK(cudaMalloc(&device_b, b.size()));
  CHECK(cudaMalloc(&device_out, sizeof(float) * m * n));
  CHECK(cudaMemcpy(device_a, a.data(), a.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size(), cudaMemcpyHostToDevice));
  Tiles<<<dim3(m / 16, n / 8), 32>>>(device_a, device_b, device_out, n, k);
  CHECK(cudaGetLastError());
  std::vector<float> out(size_t(m) * n);
  CHECK(cudaMemcpy(out.data(), device_out, sizeof(float) * out.size(), cudaMemcpyDeviceToHost));
  std::FILE* file = std::fopen(argv[6], "wb");
  if (file == nullptr || std::fwrite(out.data(), 4, out.size(), file) != out.size()) return 2;
  return std::fclose(file) == 0 ? 0 : 2;
}
