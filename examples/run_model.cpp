// Runs an ONNX model on made-up inputs and prints what comes out.
//
//   run_model model.onnx
#include <cstdio>
#include <exception>

#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_model MODEL\n");
    return 2;
  }
  try {
    const redfuser::Model model = redfuser::Model::load(argv[1]);
    const redfuser::Program program = redfuser::compile(model);

    // A program serves every shape and may be shared by threads; a session belongs to one thread.
    redfuser::Session session(program);
    redfuser::RandomOptions random;
    random.seed = 1;
    const redfuser::NamedTensors inputs = redfuser::random_inputs(model, random);
    for (const auto& [name, tensor] : session.run(inputs)) {
      std::printf("%s %s\n", name.c_str(), redfuser::describe(tensor).c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
