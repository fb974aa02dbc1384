"""Models of one ai.onnx.ml operator each: what ml_test.py runs."""

import numpy as np

RANDOM = np.random.default_rng(0)
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def uniform(*shape):
    return RANDOM.uniform(0.05, 0.95, shape).astype(np.float32)


def floats(array):
    return [float(value) for value in np.asarray(array, np.float32).ravel()]


X = normal(7, 4)
X[2] = 0
WHOLE = RANDOM.integers(-3, 4, (7, 4))
WORDS = np.array([["b", "a"], ["c", "unknown"], ["", "b"]], object)
KINDS = [X, X.astype(np.float64), WHOLE.astype(np.int32), WHOLE.astype(np.int64)]


SENTENCES = np.array([["The quick, brown  fox.", ""], ["\u00fcber den Wo\u00df\u2014a1_b", "ab,,cab"]], object)
PATTERNS = [",", "[ ,.]+", "\\b", "a*", "[a-zA-Z0-9_]+", "\\b\\w\\w+\\b", "[^ ]+", "a|ab", "^a", "b$", "\u00fc|x"]


def texts():
    for text in (SENTENCES, SENTENCES[0], np.array(["", ""], object)):
        for mark, shortest in ((0, 1), (1, 2)):
            rest = {"mark": mark, "pad_value": "#", "mincharnum": shortest}
            for pattern in PATTERNS:
                yield "Tokenizer", [text], {**rest, "tokenexp": pattern}
                yield "Tokenizer", [text], {**rest, "separators": [pattern]}
            yield "Tokenizer", [text], {**rest, "separators": ["c", " +"]}
        yield "Tokenizer", [text], {"mark": 1, "pad_value": "", "mincharnum": 1, "separators": [""]}
        for kind in (text, X, WHOLE, WHOLE.astype(np.int32), X.astype(np.float64)):
            yield "MurmurHash3", [kind], {"seed": 7}
            yield "MurmurHash3", [kind], {"positive": 0}
    yield "ZipMap", [uniform(5, 2)], {"classlabels_int64s": [7, -1]}
    yield "ZipMap", [uniform(5, 3)], {"classlabels_strings": ["c", "a", "b"]}


def features():
    for norm in ["MAX", "L1", "L2"]:
        yield from (("Normalizer", [x], {"norm": norm}) for x in KINDS)
    yield "Normalizer", [X[0]], {"norm": "L1"}
    for x in KINDS:
        yield "Scaler", [x], {"offset": [0.5, 1, -1, 2], "scale": [2.0, 0.1, 3, 1]}
    yield "Scaler", [X], {"offset": [0.5], "scale": [2.0]}
    holes = X.copy()
    holes[1, 2] = holes[4, 0] = np.nan
    new = {"imputed_value_floats": [1.0, 2, 3, 4]}
    yield "Imputer", [holes], {**new, "replaced_value_float": float("nan")}
    yield "Imputer", [X], {"imputed_value_floats": [9.0], "replaced_value_float": 0.0}
    yield "Imputer", [WHOLE], {"imputed_value_int64s": [1, 2, 3, 4], "replaced_value_int64": -2}
    for widths in ([4, 2, 4], [2, 5, 4]):
        for x in KINDS:
            yield "FeatureVectorizer", [x, x[:, :2], x + x], {"inputdimensions": widths}
    yield "FeatureVectorizer", [X[0]], {"inputdimensions": [4]}
    for x in (WHOLE, X, X.astype(np.float64)):
        yield "OneHotEncoder", [x], {"cats_int64s": [-1, 0, 2]}
    yield "OneHotEncoder", [WHOLE], {"cats_int64s": list(range(-3, 4)), "zeros": 0}
    yield "OneHotEncoder", [WORDS], {"cats_strings": ["a", "b", "c"]}
    yield "OneHotEncoder", [WORDS[0]], {"cats_strings": ["a", "b", "c"], "zeros": 0}
    positions = np.array([2, 0, 2, 3, 1], np.int64)
    for shape in ((5,), (1, 5), (5, 1)):
        for x in (*KINDS, X[0], np.array(list("abcd"), object)):
            yield "ArrayFeatureExtractor", [x, positions.reshape(shape)], {}
    category = {"cats_strings": ["a", "b", "c"], "cats_int64s": [5, 7, -1]}
    yield "CategoryMapper", [WORDS], category
    yield "CategoryMapper", [WORDS], {**category, "default_int64": 3}
    yield "CategoryMapper", [WHOLE], category
    yield "CategoryMapper", [WHOLE], {**category, "default_string": "none"}
    classes = {"classes_strings": ["a", "b", "c"]}
    yield "LabelEncoder", [WORDS], {**classes, "default_int64": 3}
    yield "LabelEncoder", [WHOLE], {**classes, "default_string": "none"}


def linear():
    for targets in (1, 3):
        for transform in TRANSFORMS:
            yield "LinearRegressor", [uniform(5, 4)], {
                "coefficients": floats(uniform(targets, 4) / 4), "targets": targets,
                "intercepts": floats(uniform(targets) / 50), "post_transform": transform}
    yield "LinearRegressor", [X], {"coefficients": floats(normal(2, 4)), "targets": 2}
    for transform in TRANSFORMS:
        yield "LinearClassifier", [uniform(5, 4)], {
            "coefficients": floats(uniform(3, 4) / 4), "intercepts": floats(uniform(3) / 50),
            "classlabels_ints": [4, 2, 9], "post_transform": transform}
    for x in KINDS:
        yield "LinearClassifier", [x], {
            "coefficients": floats(normal(3, 4)), "intercepts": floats(normal(3)),
            "classlabels_strings": ["u", "v", "w"], "post_transform": "SOFTMAX"}
    for labels in ({"classlabels_ints": [4, 2]}, {"classlabels_strings": ["no", "yes"]}):
        for transform in TRANSFORMS[:-1]:
            yield "LinearClassifier", [X], {"coefficients": floats(normal(4)), "intercepts": [0.1],
                                            "post_transform": transform, **labels}
        yield "LinearClassifier", [X], {"coefficients": floats(normal(2, 4)),
                                        "intercepts": [0.1, 0.2], **labels}
    yield "LinearClassifier", [X[0]], {"coefficients": floats(normal(2, 4)),
                                       "intercepts": [0.1, 0.2], "classlabels_ints": [4, 2]}


KERNELS = [("LINEAR", [0.0, 0, 0]), ("POLY", [0.5, 1, 2]), ("POLY", [0.3, 0.2, 3]),
           ("RBF", [0.4, 0, 0]), ("SIGMOID", [0.2, 0.1, 0])]


def machines():
    for kind, parameters in KERNELS:
        kernel = {"kernel_type": kind, "kernel_params": parameters}
        vectors = {"support_vectors": floats(normal(6, 4)), **kernel}
        yield "SVMRegressor", [X], {**vectors, "coefficients": floats(normal(6)), "rho": [0.3],
                                    "n_supports": 6}
        for per_class, labels in (([2, 4], [8, 3]), ([1, 2, 3], [8, 3, 5])):
            count = len(labels)
            pairs = count * (count - 1) // 2
            machine = {**vectors, "coefficients": floats(normal(count - 1, 6)),
                       "rho": floats(normal(pairs)), "vectors_per_class": per_class,
                       "classlabels_ints": labels}
            yield "SVMClassifier", [X], machine
            yield "SVMClassifier", [X], {**machine, "prob_a": floats(-uniform(pairs)),
                                         "prob_b": floats(normal(pairs))}
    linear = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0]}
    yield "SVMRegressor", [X], {**linear, "coefficients": floats(normal(4)), "rho": [0.3]}
    yield "SVMRegressor", [X], {**linear, "coefficients": floats(normal(4)), "rho": [0.0],
                                "one_class": 1}
    words = {key: value for key, value in machine.items() if key != "classlabels_ints"}
    words["classlabels_strings"] = ["u", "v", "w"]
    for x in KINDS:
        yield "SVMClassifier", [x], words
    for transform in TRANSFORMS[1:-1]:
        yield "SVMClassifier", [X], {**words, "post_transform": transform}
        yield "SVMClassifier", [X], {**words, "post_transform": transform, "prob_a": [-1.0, -2, -1],
                                     "prob_b": [0.1, 0.2, 0.3]}
        yield "SVMClassifier", [X], {
            **vectors, "coefficients": floats(normal(6)), "rho": [0.1], "vectors_per_class": [3, 3],
            "classlabels_ints": [8, 3], "post_transform": transform}
    for count in (2, 3):
        for sign in (1, -1):
            yield "SVMClassifier", [np.abs(X) * sign], {
                **linear, "coefficients": floats(np.abs(normal(count, 4)) * sign), "rho": [0.3],
                "classlabels_ints": [8, 3, 5][:count]}
            yield "SVMClassifier", [np.abs(X) * sign], {
                **linear, "coefficients": floats(normal(count, 4)), "rho": [-0.3],
                "classlabels_ints": [8, 3, 5][:count]}


# The words of nodes_modes in the order of TreeEnsemble's numbers.
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grown(tree, depth, modes, width, splits):
    """The nodes of one complete tree, and the numbers of its leaves."""
    nodes, leaves = [], []
    for node in range(2 ** (depth + 1) - 1):
        inner = node < 2 ** depth - 1
        if not inner:
            leaves.append(node)
        mode = modes[RANDOM.integers(len(modes))] if inner else "LEAF"
        nodes.append((tree, node, int(RANDOM.integers(width)), float(RANDOM.choice(splits)), mode,
                      2 * node + 1 if inner else 0, 2 * node + 2 if inner else 0,
                      int(RANDOM.integers(2))))
    return nodes, leaves


NODE_LISTS = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
              "missing_value_tracks_true"]


def forest(prefix, ids, weights, trees=3, depth=2, modes=("BRANCH_LEQ",), missing=False,
           splits=(-1.0, 0.0, 0.5, 1.0)):
    """Attributes of an ensemble; every leaf has a weight for each of `ids`, drawn by `weights`."""
    nodes, entries = [], []
    for tree in range(trees):
        own, leaves = grown(tree, depth, modes, 4, splits)
        nodes += own
        entries += [(tree, leaf, target, weights()) for leaf in leaves for target in ids]
    lists = {f"nodes_{name}": list(column) for name, column in zip(NODE_LISTS, zip(*nodes))}
    if not missing:
        del lists["nodes_missing_value_tracks_true"]
    for name, column in zip(["treeids", "nodeids", "ids", "weights"], zip(*entries)):
        lists[f"{prefix}_{name}"] = list(column)
    return lists


def signed():
    return float(RANDOM.normal())


def positive():
    return float(RANDOM.uniform(0.02, 0.3))


HOLES = normal(40, 4)
HOLES[RANDOM.random((40, 4)) < 0.2] = np.nan
GRID = RANDOM.integers(-1, 2, (40, 4))


def regressors():
    for targets in (1, 3):
        ids = list(range(targets))
        for function in ["SUM", "AVERAGE", "MIN", "MAX"]:
            for base in ([], [0.25] * targets):
                yield "TreeEnsembleRegressor", [normal(20, 4)], {
                    **forest("target", ids, signed), "n_targets": targets,
                    "aggregate_function": function, "base_values": base}
        for transform in TRANSFORMS:
            yield "TreeEnsembleRegressor", [normal(20, 4)], {
                **forest("target", ids, positive), "n_targets": targets,
                "post_transform": transform}
    for modes in [[mode] for mode in MODES] + [MODES]:
        for missing in (False, True):
            trees = forest("target", [0], signed, modes=modes, missing=missing)
            for x in (HOLES, GRID, GRID.astype(np.float64), GRID.astype(np.int32)):
                yield "TreeEnsembleRegressor", [x], {**trees, "n_targets": 1}
    for trees, depth in ((1, 0), (1, 1), (30, 5)):
        yield "TreeEnsembleRegressor", [normal(300, 4)], {
            **forest("target", [0], signed, trees, depth), "n_targets": 1}
    double = forest("target", [0, 1], signed)
    for name in ("nodes_values", "target_weights"):
        double[f"{name}_as_tensor"] = np.array(double.pop(name), np.float64)
    double["base_values_as_tensor"] = np.array([0.1, 0.2], np.float64)
    for version in (3, 5):
        yield ("TreeEnsembleRegressor", [normal(9, 4).astype(np.float64)],
               {**double, "n_targets": 2}, version)
    # Leaves without a weight for a target, and leaves with none at all.
    sparse = forest("target", [0], signed)
    for name in ("treeids", "nodeids", "ids", "weights"):
        del sparse[f"target_{name}"][::3]
    for function in ["SUM", "MIN", "MAX"]:
        yield "TreeEnsembleRegressor", [normal(20, 4)], {**sparse, "n_targets": 2,
                                                         "aggregate_function": function}


INTS2, INTS3 = {"classlabels_int64s": [5, 7]}, {"classlabels_int64s": [5, 7, -1]}
WORDS2, WORDS3 = {"classlabels_strings": ["no", "yes"]}, {"classlabels_strings": ["u", "v", "w"]}


def classifiers():
    op = "TreeEnsembleClassifier"
    for transform in TRANSFORMS:
        for labels in (INTS3, WORDS3):
            yield op, [normal(20, 4)], {**forest("class", [0, 1, 2], positive), **labels,
                                        "post_transform": transform}
    for weights in (signed, positive):
        for labels in (INTS2, WORDS2):
            for name in (0, 1):
                for base in ([], [0.1]):
                    for transform in TRANSFORMS[:-1]:
                        yield op, [normal(20, 4)], {
                            **forest("class", [name], weights), **labels, "base_values": base,
                            "post_transform": transform}
    for weights in (signed, positive):
        yield op, [normal(20, 4)], {**forest("class", [0, 1, 2], weights), **INTS3,
                                    "base_values": [0.1, 0.2, -0.1]}
        for base in ([], [0.1]):
            for transform in TRANSFORMS:
                # The label of two scores is checked by its own rule.
                yield op, [normal(20, 4)], {
                    **forest("class", [0, 1], weights), **INTS2, "base_values": base,
                    "post_transform": transform}, 3, ["z"]
    for x in (HOLES, GRID, GRID.astype(np.float64), GRID.astype(np.int32)):
        yield op, [x], {**forest("class", [0, 1, 2], signed, modes=MODES, missing=True), **WORDS3}
    yield op, [normal(9, 4)], {**forest("class", [0], signed), "classlabels_int64s": [1]}
    sparse = forest("class", [0, 1, 2], signed, trees=5)
    for name in ("treeids", "nodeids", "ids", "weights"):
        del sparse[f"class_{name}"][::3]
    yield op, [normal(20, 4)], {**sparse, **INTS3}
    double = forest("class", [0, 1, 2], positive)
    for name in ("nodes_values", "class_weights"):
        double[f"{name}_as_tensor"] = np.array(double.pop(name), np.float64)
    yield op, [normal(9, 4).astype(np.float64)], {**double, **INTS3}, 3


def pools():
    image = normal(2, 3, 6, 5)
    for p in (1, 2, 3):
        yield "GlobalLpPool", [image], {"p": p}
    boxes = np.array([[0, 0, 0, 4, 5], [1, 2, 1, 3, 2], [0, 3, 3, 9, 9], [1, -3, -2, -1, -1]],
                     np.float32)
    yield "MaxRoiPool", [image, boxes], {"pooled_shape": [2, 3]}
    yield "MaxRoiPool", [image, boxes], {"pooled_shape": [3, 2], "spatial_scale": 0.5}


def fitting(op, attributes, **changes):
    """A sound case with some attributes changed; None takes one away."""
    merged = {**attributes, **changes}
    return op, [X], {name: value for name, value in merged.items() if value is not None}


def wrong():
    """Cases that are errors, and a part of what is said of each."""
    stump = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
             "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}
    leaves = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 0], "weights": [1.0, 2.0]}
    tree = {**stump, **{f"target_{name}": value for name, value in leaves.items()}, "n_targets": 1}
    op = "TreeEnsembleRegressor"
    yield fitting(op, tree, nodes_values=[0.5]), "nodes_values has 1 values, not 3"
    yield fitting(op, tree, nodes_modes=None), "nodes_modes has 0 values, not 3"
    yield fitting(op, tree, nodes_featureids=[0, 0]), "nodes_featureids has 2 values"
    yield fitting(op, tree, nodes_featureids=[-1, 0, 0]), "feature -1"
    yield fitting(op, tree, nodes_featureids=[4, 0, 0]), "feature 4 of 4"
    yield fitting(op, tree, nodes_truenodeids=[3, 0, 0]), "node 3, which is not there"
    yield fitting(op, tree, nodes_nodeids=[0, 1, 1]), "there twice"
    yield fitting(op, tree, nodes_truenodeids=[0, 0, 0]), "cycle"
    yield fitting(op, tree, nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "LEAF"]), "cycle"
    yield fitting(op, tree, nodes_modes=["BRANCH_LEQ", "LEAVE", "LEAF"]), "unknown node mode"
    yield fitting(op, tree, nodes_missing_value_tracks_true=[1]), "tracks_true has 1 values"
    yield fitting(op, tree, target_weights=[1.0]), "target_weights has 1 values, not 2"
    yield fitting(op, tree, target_nodeids=[1, 7]), "node 7 of tree 0, which is not there"
    yield fitting(op, tree, target_ids=[0, 1]), "target 1 of 1"
    yield fitting(op, tree, n_targets=0), "n_targets is 0"
    yield fitting(op, tree, base_values=[1.0, 2.0]), "base_values"
    yield fitting(op, tree, aggregate_function="MEDIAN"), "MEDIAN"
    yield fitting(op, tree, post_transform="TANH"), "TANH"
    yield (op, [X[0]], tree), "must be [N,features]"
    classes = {**stump, **{f"class_{name}": value for name, value in leaves.items()}, **INTS2}
    op = "TreeEnsembleClassifier"
    yield fitting(op, classes, classlabels_int64s=None), "no class labels"
    yield fitting(op, classes, class_ids=[0, 2]), "class 2 of 2"
    yield fitting(op, classes, base_values=[1.0, 2.0]), "base_values"
    yield fitting(op, classes, nodes_falsenodeids=[0, 0, 0]), "cycle"
    linear = {"coefficients": floats(normal(3, 4)), "intercepts": [0.0, 1, 2],
              "classlabels_ints": [1, 2, 3]}
    op = "LinearClassifier"
    yield fitting(op, linear, intercepts=[0.0] * 5), "12 values for 5 rows"
    yield fitting(op, linear, classlabels_ints=[1, 2]), "2 class labels for 3 rows"
    yield fitting(op, linear, coefficients=[1.0] * 9), "for 3 features, the input has 4"
    yield fitting(op, linear, post_transform="TANH"), "TANH"
    yield fitting("LinearRegressor", linear, classlabels_ints=None, targets=0), "0 rows"
    yield fitting("LinearRegressor", linear, classlabels_ints=None, targets=2), "6 features"
    machine = {"support_vectors": floats(normal(5, 4)), "coefficients": floats(normal(5)),
               "rho": [0.1], "kernel_type": "RBF", "kernel_params": [0.1, 0, 0]}
    op = "SVMRegressor"
    yield fitting(op, machine, n_supports=4), "for 5 features, the input has 4"
    yield fitting(op, machine, n_supports=-1), "n_supports: -1"
    yield fitting(op, machine, n_supports=5, coefficients=[1.0]), "1 coefficients for 5"
    yield fitting(op, machine, n_supports=5, rho=None), "rho"
    yield fitting(op, machine, n_supports=5, kernel_params=[0.5]), "kernel_params"
    yield fitting(op, machine, n_supports=5, kernel_type="COSINE"), "COSINE"
    op = "SVMClassifier"
    pair = {**machine, "vectors_per_class": [2, 3], "classlabels_ints": [0, 1]}
    yield fitting(op, pair, vectors_per_class=[2, -3]), "-3 vectors"
    yield fitting(op, pair, vectors_per_class=[2, 5]), "support vectors"
    yield fitting(op, pair, vectors_per_class=[1, 2, 2]), "vectors_per_class has 3 values, not 2"
    yield fitting(op, pair, classlabels_ints=None), "no class labels"
    yield fitting(op, pair, coefficients=[1.0]), "coefficients has 1 values, not 5"
    yield fitting(op, pair, rho=None), "rho has 0 values, not 1"
    yield fitting(op, pair, prob_a=[1.0]), "prob_b has 0 values, not 1"
    yield fitting(op, pair, kernel_params=None), "kernel_params has 0 values, not 3"
    yield ("Scaler", [X], {"scale": [1.0, 2]}), "scale has 2 values for 4 features"
    yield ("Imputer", [X], {}), "no imputed_value_floats"
    yield ("Imputer", [WHOLE], {"imputed_value_floats": [1.0]}), "no imputed_value_int64s"
    yield ("Normalizer", [X], {"norm": "L3"}), "L3"
    yield ("FeatureVectorizer", [X], {"inputdimensions": [1, 2]}), "2 inputdimensions for 1"
    yield ("FeatureVectorizer", [X], {"inputdimensions": [-1]}), "inputdimensions: -1"
    yield ("FeatureVectorizer", [X], {"inputdimensions": [2 ** 62]}), "inputdimensions: 4611"
    yield ("OneHotEncoder", [WORDS], {"cats_int64s": [1]}), "no cats_strings"
    yield ("OneHotEncoder", [WHOLE], {"cats_int64s": [1], "zeros": 0}), "none of the categories"
    yield ("CategoryMapper", [WORDS], {"cats_strings": ["a"]}), "1 cats_strings for 0 cats_int64s"
    yield ("MaxRoiPool", [normal(1, 1, 4, 4), normal(2, 4)], {"pooled_shape": [2, 2]}), "[R,5]"
    yield ("MaxRoiPool", [normal(1, 1, 4, 4), normal(2, 5)], {"pooled_shape": [0, 2]}), "pooled"
    far = np.array([[3, 0, 0, 1, 1]], np.float32)
    yield ("MaxRoiPool", [normal(1, 1, 4, 4), far], {"pooled_shape": [2, 2]}), "image 3 of 1"
    yield ("ZipMap", [uniform(5, 2)], {"classlabels_int64s": [0, 1, 2]}), "3 classes for 2 columns"
    yield ("ZipMap", [uniform(5, 2)], {}), "one of classlabels_strings"
    token = {"mark": 0, "pad_value": "", "mincharnum": 1}
    yield ("Tokenizer", [WORDS], {**token, "tokenexp": "(a"}), "tokenexp \"(a\""
    yield ("Tokenizer", [WORDS], {**token, "separators": [",", "["]}), "separators \"[\""
    yield ("Tokenizer", [WORDS], token), "one of separators and tokenexp"
