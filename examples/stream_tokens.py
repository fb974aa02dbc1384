"""Generates tokens by a decoder with a cache, and prints each as it is known.

    pip install redfuser
    python stream_tokens.py decoder.onnx 1 17 42
"""

import sys

import redfuser


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: stream_tokens.py MODEL ID...")
    try:
        generator = redfuser.Generator(redfuser.Session(sys.argv[1]))
        for _, token in generator.stream([int(text) for text in sys.argv[2:]], max_tokens=16):
            print(token, end=" ", flush=True)
    except ValueError as error:  # as redfuser.UserError is
        sys.exit(f"error: {error}")
    print()


if __name__ == "__main__":
    main()
