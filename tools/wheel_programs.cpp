// The programs of the Python wheel in one file: the name that it is called by chooses.
#include <cstdio>
#include <string_view>

int run_main(int argc, char** argv);
int opt_main(int argc, char** argv);
int bench_main(int argc, char** argv);

int main(int argc, char** argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name.remove_prefix(name.find_last_of('/') + 1);
  if (name == "redfuser-run") return run_main(argc, argv);
  if (name == "redfuser-opt") return opt_main(argc, argv);
  if (name == "redfuser-bench") return bench_main(argc, argv);
  std::fprintf(stderr, "error: call redfuser-run, redfuser-opt or redfuser-bench\n");
  return 2;
}
