// Memory, streams, events and errors of a device.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

using OfTheDevice = DeviceTest;

std::vector<uint32_t> Counting(size_t size) {
  std::vector<uint32_t> values(size);
  std::iota(values.begin(), values.end(), 1u);
  return values;
}

TEST_F(OfTheDevice, ItsDescriptionIsPlausible) {
  const DeviceInfo& device = Device();
  EXPECT_FALSE(device.name.empty());
  EXPECT_GE(device.compute_capability, 50);
  EXPECT_GE(device.multiprocessors, 1);
  EXPECT_GE(device.memory_bytes, size_t{1} << 30);
  EXPECT_LE(device.l2_bytes, device.memory_bytes);
  for (const std::string& version : {device.driver, device.runtime}) {
    EXPECT_TRUE(std::isdigit(version.front()) && std::isdigit(version.back())) << version;
    EXPECT_THAT(version, HasSubstr("."));
  }
  EXPECT_FALSE(device.code.empty());
  EXPECT_EQ(device.IsHopper(), device.compute_capability == 90);
}

TEST_F(OfTheDevice, WhatIsCopiedInComesBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, (size_t{1} << 20) + 3}) {
    const std::vector<uint32_t> values = Counting(size);
    const DeviceArray<uint32_t> array = OnDevice(values, stream());
    EXPECT_EQ(array.size(), size);
    EXPECT_EQ(OnHost(array, stream()), values) << size;
  }
}

TEST_F(OfTheDevice, PartsOfArraysAreCopiedAndFilledAlone) {
  DeviceArray<uint32_t> array = OnDevice(Counting(100), stream());
  const DeviceSpan<uint32_t> all = array.span();
  device_memory::CopyWithin(all.data() + 10, all.data() + 50, 5 * sizeof(uint32_t), stream());
  device_memory::FillBytes(all.data() + 20, 0xA5, 3 * sizeof(uint32_t), stream());
  std::vector<uint32_t> expected = Counting(100);
  std::copy_n(expected.begin() + 10, 5, expected.begin() + 50);
  std::fill_n(expected.begin() + 20, 3, 0xA5A5A5A5u);
  EXPECT_EQ(OnHost(array, stream()), expected);

  std::vector<uint32_t> part(7);
  CopyToHost(DeviceSpan<const uint32_t>(all.subspan(48, 7)), std::span(part), stream());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + 48));
}

TEST_F(OfTheDevice, CopiesOfNothingDoNothing) {
  const std::vector<float> none;
  const DeviceArray<float> array = OnDevice(none, stream());
  EXPECT_EQ(array.data(), nullptr);
  device_memory::CopyWithin(nullptr, nullptr, 0, stream());
  device_memory::FillBytes(nullptr, 1, 0, stream());
  EXPECT_TRUE(OnHost(array, stream()).empty());
  stream().Wait();
}

TEST_F(OfTheDevice, MemoryIsAlignedTo256Bytes) {
  for (size_t bytes = 1; bytes < 3000; bytes = 3 * bytes + 1) {
    const DeviceArray<uint8_t> array(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 256, 0u) << bytes;
  }
}

TEST_F(OfTheDevice, ReserveGrowsAndNeverShrinks) {
  DeviceArray<uint32_t> array;
  array.Reserve(10);
  EXPECT_EQ(array.size(), 10u);
  uint32_t* const data = array.data();
  array.Reserve(4);
  EXPECT_EQ(array.size(), 10u);
  EXPECT_EQ(array.data(), data);
  array.Reserve(1 << 20);
  EXPECT_EQ(array.size(), size_t{1} << 20);
  const std::vector<uint32_t> values = Counting(size_t{1} << 20);
  CopyToDevice(std::span<const uint32_t>(values), array.span(), stream());
  EXPECT_EQ(OnHost(array, stream()), values);
}

// Half of the memory fits beside nothing but itself.
TEST_F(OfTheDevice, ReserveGivesTheOldMemoryBackFirst) {
  const size_t half = Device().memory_bytes / 100 * 55;
  DeviceArray<uint8_t> array;
  const std::string error = ErrorOf([&] { array.Reserve(half); });
  if (error != kNoError) GTEST_SKIP() << "others use this device: " << error;
  array.Reserve(half + 1);
  EXPECT_EQ(array.size(), half + 1);
}

TEST_F(OfTheDevice, AMovedArrayOwnsWhatTheOtherDid) {
  DeviceArray<uint32_t> first = OnDevice(Counting(5), stream());
  uint32_t* const data = first.data();
  DeviceArray<uint32_t> second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.size(), 5u);
  EXPECT_EQ(OnHost(second, stream()), Counting(5));
}

TEST_F(OfTheDevice, TooMuchMemoryIsAnErrorThatNamesCallAndSizeAndIsThenForgotten) {
  const size_t bytes = size_t{1} << 60;
  const std::string message = ErrorOf([&] { DeviceArray<uint8_t>{bytes}; });
  EXPECT_THAT(message, HasSubstr("cudaMalloc, 1152921504606846976 bytes: "));
  // No later call is blamed for it.
  const DeviceArray<uint32_t> array = OnDevice(Counting(9), stream());
  EXPECT_EQ(OnHost(array, stream()), Counting(9));
  stream().Wait();
}

TEST_F(OfTheDevice, ACopyThatCudaRefusesIsAnErrorThatNamesCallAndSizeAndIsThenForgotten) {
  DeviceArray<uint32_t> array(4);
  // No address of the device, nor one of the host that could be read.
  const std::string message = ErrorOf(
      [&] { device_memory::CopyWithin(nullptr, array.data(), 4 * sizeof(uint32_t), stream()); });
  EXPECT_THAT(message, HasSubstr("cudaMemcpyAsync, 16 bytes on the device: "));
  const DeviceArray<uint32_t> other = OnDevice(Counting(9), stream());
  EXPECT_EQ(OnHost(other, stream()), Counting(9));
}

TEST_F(OfTheDevice, EachThreadHasItsOwnStream) {
  const void* const here = ThreadStream().handle();
  EXPECT_EQ(ThreadStream().handle(), here);
  std::vector<uint32_t> back;
  const void* there = nullptr;
  std::thread other([&] {
    there = ThreadStream().handle();
    back = OnHost(OnDevice(Counting(1000), ThreadStream()), ThreadStream());
  });
  other.join();
  EXPECT_NE(there, here);
  EXPECT_EQ(back, Counting(1000));
}

TEST_F(OfTheDevice, AMovedStreamStillWorks) {
  DeviceStream first;
  DeviceStream second = std::move(first);
  EXPECT_EQ(first.handle(), nullptr);
  EXPECT_EQ(OnHost(OnDevice(Counting(17), second), second), Counting(17));
}

// By the host's clock too: a fill of 1 GiB takes longer than nothing and less than what passes
// here.
TEST_F(OfTheDevice, EventsMeasureWhatLiesBetweenThem) {
  DeviceArray<uint8_t> memory(size_t{1} << 30);
  device_memory::FillBytes(memory.data(), 0, memory.size(), stream());  // warm
  stream().Wait();
  DeviceEvent begin, end;
  const auto start = std::chrono::steady_clock::now();
  begin.Record(stream());
  for (int i = 0; i < 8; ++i) {
    device_memory::FillBytes(memory.data(), 1, memory.size(), stream());
  }
  end.Record(stream());
  const double seconds = DeviceEvent::Seconds(begin, end);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(seconds, 8 * 1.074e9 / 20e12);  // no device writes 20 TB/s
  EXPECT_LT(seconds, passed.count());
}

TEST_F(OfTheDevice, SecondsOfAnEventThatWasNeverRecordedAreAnError) {
  const DeviceEvent begin, end;
  EXPECT_THAT(ErrorOf([&] { DeviceEvent::Seconds(begin, end); }),
              HasSubstr("cudaEventElapsedTime, "));
  EXPECT_EQ(OnHost(OnDevice(Counting(3), stream()), stream()), Counting(3));
}

TEST_F(OfTheDevice, CopiesOfUnequalSizesThrow) {
  std::vector<float> three(3);
  DeviceArray<float> two(2);
  EXPECT_EQ(ErrorOf([&] { CopyToDevice(std::span<const float>(three), two.span(), stream()); }),
            "CopyToDevice: 'to' has 2 elements, expected 3");
  const DeviceSpan<const float> from = two.span();
  EXPECT_EQ(ErrorOf([&] { CopyToHost(from, std::span<float>(three), stream()); }),
            "CopyToHost: 'to' has 3 elements, expected 2");
}

}  // namespace
}  // namespace numsim
