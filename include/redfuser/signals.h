// How a program that writes files ends when a signal stops it.
#pragma once

namespace redfuser {

// For a program's main(), before it starts threads. From then on:
//   SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU  remove the files that are being written, then end
//                                              the process as they do by default; one that the
//                                              process ignores stays ignored
//   SIGPIPE, SIGXFSZ                           are ignored, so that the write fails with an error
// Without it a signal in the middle of a write may leave a temporary file beside the target.
void remove_unfinished_files_on_signals();

// Removes the files that are being written. For a program about to end by itself while another of
// its threads writes.
void remove_unfinished_files();

}  // namespace redfuser
