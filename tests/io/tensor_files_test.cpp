// Tensors in files: round trips, foreign forms, and files that lie.
#include "redfuser/io.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "support/folder_test.h"

namespace redfuser {
namespace {

using IoTest = FolderTest;

template <typename T>
Tensor make(DType dtype, Dims dims, const std::vector<T>& data) {
  Tensor tensor(dtype, std::move(dims));
  std::copy(data.begin(), data.end(), tensor.as<T>());
  return tensor;
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.dims(), b.dims());
  if (a.bytes() > 0) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }
}

NamedTensors every_dtype() {
  NamedTensors tensors;
  for (int i = 1; i <= static_cast<int>(DType::Float64); ++i) {
    const DType dtype = static_cast<DType>(i);
    if (size_of(dtype) == 0 || dtype == DType::String) continue;
    Tensor tensor(dtype, {2, 3});
    for (size_t b = 0; b < tensor.bytes(); ++b) {
      tensor.as<uint8_t>()[b] = dtype == DType::Bool ? b % 2 : static_cast<uint8_t>(7 * b + 1);
    }
    tensors[std::string(name_of(dtype))] = tensor;
  }
  tensors["scalar"] = make<float>(DType::Float32, {}, {1.5f});
  tensors["empty"] = Tensor(DType::Int64, {0, 4});
  tensors["vector"] = make<int64_t>(DType::Int64, {1}, {-1});
  return tensors;
}

TEST_F(IoTest, NpzRoundTrip) {
  const NamedTensors tensors = every_dtype();
  save_tensors(path("a.npz"), tensors);
  const NamedTensors loaded = load_tensors(path("a.npz"));
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    expect_equal(loaded.at(name), tensor);
  }
  save_tensors(path("b.npz"), tensors);
  EXPECT_EQ(read(path("a.npz")), read(path("b.npz")));
}

TEST_F(IoTest, SingleTensorFilesRoundTrip) {
  for (const char* suffix : {".npy", ".pb"}) {
    for (const auto& [name, tensor] : every_dtype()) {
      SCOPED_TRACE(name + suffix);
      save_tensors(path(name + suffix), {{name, tensor}});
      const NamedTensors loaded = load_tensors(path(name + suffix));
      ASSERT_EQ(loaded.size(), 1u);
      expect_equal(loaded.at(name), tensor);
    }
  }
  EXPECT_THROW(save_tensors(path("two.npy"), every_dtype()), UserError);
}

TEST_F(IoTest, JsonRoundTrip) {
  NamedTensors tensors;
  tensors["f"] = make<float>(DType::Float32, {2, 2},
                             {0.1f, -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::infinity(), 1e-30f});
  tensors["i"] = make<int64_t>(DType::Int64, {2}, {INT64_MIN, INT64_MAX});
  tensors["u"] = make<uint64_t>(DType::UInt64, {1}, {UINT64_MAX});
  tensors["b"] = make<bool>(DType::Bool, {2}, {true, false});
  tensors["h"] = make<Half>(DType::Float16, {1}, {Half(0.333f)});
  tensors["empty"] = Tensor(DType::Float32, {0, 3});
  save_tensors(path("a.json"), tensors);
  const NamedTensors loaded = load_tensors(path("a.json"));
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    expect_equal(loaded.at(name), tensor);
  }
}

TEST_F(IoTest, BareJsonListsFindTheirDtype) {
  write("a.json", R"({"i": [[1, 2], [3, 4]], "f": [1, 2.5], "b": [true], "s": "NaN"})");
  const NamedTensors loaded = load_tensors(path("a.json"));
  expect_equal(loaded.at("i"), make<int64_t>(DType::Int64, {2, 2}, {1, 2, 3, 4}));
  expect_equal(loaded.at("f"), make<float>(DType::Float32, {2}, {1, 2.5f}));
  expect_equal(loaded.at("b"), make<bool>(DType::Bool, {1}, {true}));
  EXPECT_TRUE(std::isnan(loaded.at("s").as<float>()[0]));
}

TEST_F(IoTest, Bfloat16BecomesFloat32InNumpyFiles) {
  const Tensor narrow = make<BFloat16>(DType::BFloat16, {2}, {BFloat16(1.5f), BFloat16(-2.0f)});
  save_tensors(path("a.npz"), {{"x", narrow}});
  expect_equal(load_tensors(path("a.npz")).at("x"),
               make<float>(DType::Float32, {2}, {1.5f, -2.0f}));
}

std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string text = header + "\n";
  std::string bytes("\x93NUMPY", 6);
  bytes += {static_cast<char>(version), '\0'};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  }
  return bytes + text + data;
}

std::string header_of(const std::string& descr, bool fortran, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

TEST_F(IoTest, ForeignNpyForms) {
  // A 2x3 matrix stored by columns.
  write("fortran.npy", npy(header_of("|u1", true, "(2, 3)"), std::string("\1\4\2\5\3\6")));
  expect_equal(load_tensors(path("fortran.npy")).at("fortran"),
               make<uint8_t>(DType::UInt8, {2, 3}, {1, 2, 3, 4, 5, 6}));
  write("big.npy", npy(header_of(">i2", false, "(2,)"), std::string("\1\2\3\4")));
  expect_equal(load_tensors(path("big.npy")).at("big"),
               make<int16_t>(DType::Int16, {2}, {0x102, 0x304}));
  write("v2.npy", npy(header_of("|i1", false, "()"), "\7", 2));
  expect_equal(load_tensors(path("v2.npy")).at("v2"), make<int8_t>(DType::Int8, {}, {7}));
  // Keys in any order, other quotes, Python 2's long integers; bools other than 0 and 1.
  write("odd.npy", npy("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"|b1\"}", "\5\1"));
  expect_equal(load_tensors(path("odd.npy")).at("odd"), make<bool>(DType::Bool, {2}, {true, true}));
}

TEST_F(IoTest, InvalidNpyFiles) {
  const std::string four(4, '\0');
  const std::pair<const char*, std::string> cases[] = {
      {"empty file", ""},
      {"magic", "not a npy file"},
      {"version", npy(header_of("<f4", false, "(1,)"), four, 9)},
      {"truncated header", npy(header_of("<f4", false, "(1,)"), "").substr(0, 20)},
      {"no dictionary", npy("hello", four)},
      {"missing key", npy("{'descr': '<f4', 'shape': (1,)}", four)},
      {"unknown dtype", npy(header_of("<U7", false, "(1,)"), four)},
      {"object dtype", npy(header_of("|O", false, "(1,)"), four)},
      {"records", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four)},
      {"negative", npy(header_of("<f4", false, "(-1,)"), four)},
      {"overflow", npy(header_of("<f4", false, "(4294967296, 4294967296, 4)"), four)},
      {"bomb", npy(header_of("<f4", false, "(1000000000000,)"), four)},
      {"data too short", npy(header_of("<f4", false, "(2,)"), four)},
      {"data too long", npy(header_of("<f4", false, "()"), four + four)},
      {"huge number", npy(header_of("<f4", false, "(99999999999999999999,)"), four)},
      {"unclosed", npy("{'descr': '<f4", four)},
  };
  for (const auto& [name, bytes] : cases) {
    SCOPED_TRACE(name);
    write("bad.npy", bytes);
    EXPECT_THROW(load_tensors(path("bad.npy")), UserError);
  }
}

// A zip archive of one deflated entry, with sizes only in the directory, as streaming writers do.
std::string deflated_zip(const std::string& name, const std::string& data, uint32_t claimed_size) {
  std::string packed(compressBound(data.size()) + 16, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto put = [](std::string& bytes, uint64_t value, int width) {
    for (int i = 0; i < width; ++i)
      bytes.push_back(static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0));
  };
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  std::string file;
  for (const auto& [value, width] :
       {std::pair{0x04034b50, 4}, {20, 2}, {8, 2}, {8, 2}, {0, 4}, {0, 4}, {0, 4}, {0, 4}}) {
    put(file, static_cast<uint64_t>(value), width);
  }
  put(file, name.size(), 2);
  put(file, 0, 2);
  file += name + packed;
  const size_t directory = file.size();
  put(file, 0x02014b50, 4);
  for (const int field : {20, 20, 8, 8}) put(file, static_cast<uint64_t>(field), 2);
  put(file, 0, 4);
  put(file, crc, 4);
  put(file, packed.size(), 4);
  put(file, claimed_size, 4);
  put(file, name.size(), 2);
  put(file, 0, 16);
  file += name;
  const size_t end = file.size();
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, 1, 2);
  put(file, 1, 2);
  put(file, end - directory, 4);
  put(file, directory, 4);
  put(file, 0, 2);
  return file;
}

TEST_F(IoTest, DeflatedNpz) {
  std::string elements(4000, '\0');
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<char>(i * i);
  const std::string array = npy(header_of("|u1", false, "(4000,)"), elements);
  write("a.npz", deflated_zip("x.npy", array, static_cast<uint32_t>(array.size())));
  const Tensor tensor = load_tensors(path("a.npz")).at("x");
  ASSERT_EQ(tensor.dims(), Dims{4000});
  EXPECT_EQ(std::memcmp(tensor.data(), elements.data(), elements.size()), 0);
}

TEST_F(IoTest, DamagedNpz) {
  const std::string array = npy(header_of("|u1", false, "(100,)"), std::string(100, 'x'));
  const uint32_t size = static_cast<uint32_t>(array.size());
  const std::string good = deflated_zip("x.npy", array, size);
  write("short.npz", deflated_zip("x.npy", array, size + 50));
  EXPECT_THROW(load_tensors(path("short.npz")), UserError);
  write("bomb.npz", deflated_zip("x.npy", array, 0xfffffff0));
  EXPECT_THROW(load_tensors(path("bomb.npz")), UserError);
  // Every truncation and every flipped byte is an error or gives the same array.
  for (size_t i = 0; i < good.size(); ++i) {
    write("cut.npz", good.substr(0, i));
    EXPECT_THROW(load_tensors(path("cut.npz")), UserError) << "cut at " << i;
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x41);
    write("flip.npz", flipped);
    try {
      for (const auto& [name, tensor] : load_tensors(path("flip.npz"))) {
        ASSERT_EQ(tensor.bytes(), 100u);
        EXPECT_EQ(tensor.as<char>()[99], 'x');
      }
    } catch (const UserError&) {
    }
  }
}

TEST_F(IoTest, InvalidJson) {
  for (const char* text :
       {"", "[1]", "{\"x\": [1, [2]]}", "{\"x\": [[1], 2]}", "{\"x\": [[1, 2], [3]]}",
        "{\"x\": [\"a\", 1]}", "{\"x\": null}", "{\"x\": {\"dtype\": \"float32\"}}",
        "{\"x\": {\"dtype\": \"string\", \"shape\": [], \"data\": [1]}}",
        "{\"x\": {\"dtype\": \"int8\", \"shape\": [1], \"data\": [300]}}",
        "{\"x\": {\"dtype\": \"float32\", \"shape\": [3], \"data\": [1, 2]}}",
        "{\"x\": {\"dtype\": \"float32\", \"shape\": [-1], \"data\": [1]}}"}) {
    SCOPED_TRACE(text);
    write("a.json", text);
    EXPECT_THROW(load_tensors(path("a.json")), UserError);
  }
}

TEST_F(IoTest, InvalidElementsOfJsonAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"x\": [1, \"two\"]}", "the text \"two\" stands where a number is expected"},
      {"{\"x\": [null]}", "null stands where a number is expected"},
      {"{\"x\": {\"dtype\": \"int8\", \"shape\": [1], \"data\": [300]}}",
       "300 stands where an integer in [-128, 127] is expected"},
      {"{\"x\": {\"dtype\": \"uint8\", \"shape\": [1], \"data\": [\"7\"]}}",
       "the text \"7\" stands where an integer in [0, 255] is expected"},
      {"{\"x\": {\"dtype\": \"string\", \"shape\": [1], \"data\": [7]}}",
       "7 stands where a text is expected"},
      {"{\"x\": {\"dtype\": \"int8\", \"shape\": [\"1\"], \"data\": [3]}}", "\"shape\": the text"},
      {"{\"x\": {\"dtype\": \"complex64\", \"shape\": [], \"data\": [3]}}", "complex64"},
  };
  for (const auto& [text, part] : cases) {
    write("a.json", text);
    try {
      load_tensors(path("a.json"));
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(part), std::string::npos) << message;
      EXPECT_NE(message.find("\"x\""), std::string::npos) << message;
    }
  }
}

TEST_F(IoTest, TextsInJson) {
  const Model model = Model::parse(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (string[n] x) => (string[n] y) "
      "{ y = Identity(x) }");
  write("a.json", R"({"x": ["one", "2"]})");
  const Tensor bare = load_tensors(path("a.json"), model, Role::Inputs).at("x");
  write("a.json", R"({"x": {"dtype": "string", "shape": [2], "data": ["one", "2"]}})");
  for (const Tensor& x : {bare, load_tensors(path("a.json")).at("x")}) {
    ASSERT_EQ(describe(x), "string[2]");
    EXPECT_EQ(x.text(0), "one");
    EXPECT_EQ(x.text(1), "2");
  }
}

TEST_F(IoTest, UnsupportedArraysAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"<c16", "\"<c16\" (complex128)"},
      {"<c8", "\"<c8\" (complex64)"},
      {"|O", "\"|O\" (Python objects; NumPy has texts as str)"},
      {"<M8[s]", "(dates or durations)"},
      {"<f16", "\"<f16\" is"}};
  for (const auto& [descr, part] : cases) {
    write("bad.npy", npy(header_of(descr, false, "(1,)"), std::string(16, '\0')));
    try {
      load_tensors(path("bad.npy"));
      ADD_FAILURE() << descr;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST_F(IoTest, WrongPaths) {
  EXPECT_THROW(load_tensors(path("missing.npz")), UserError);
  EXPECT_THROW(load_tensors(folder_.string()), UserError);
  EXPECT_THROW(load_tensors(write("a.txt", "x")), UserError);
  EXPECT_THROW(save_tensors(path("no/such/folder/a.npz"), {}), UserError);
  EXPECT_THROW(save_tensors(path("a.txt"), {}), UserError);
}

}  // namespace
}  // namespace redfuser
