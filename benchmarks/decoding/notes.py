"""What the page says about how decoding is measured."""

from benchmarks.decoding.jobs import FEWEST_SENTENCES, LIMIT, LONGEST, SHORTEST, SOURCE_LENGTH

NOTES = f"""\
A run takes ids (CTranslate2: tokens) and returns ids. Every contender has a process of its own and the same number of threads;
for each job they take turns in several rounds, so that all see the same noise. Speed is output tokens a second, ends included,
in the fastest run, and in the median run. Ours divides a batch among the threads, with one thread for an operation, and the
products of a single sentence. CTranslate2 has all threads on a batch, with oneDNN's products (`CT2_USE_MKL=0`: MKL's, which it
takes on an Intel CPU, were several times slower with two threads than with one), or, "batch split", a thread for each part of
it; the reference, for each job, is the faster of the two in float32. Our
graph, CTranslate2 and Marian have the same weights; "same ids" is the share of sentences for which a contender's translation is
that of the reference, id for id.

*{SOURCE_LENGTH} tokens*: sources of {SOURCE_LENGTH} tokens and {SOURCE_LENGTH} steps for every translation. The end is
suppressed. Ours forces it as the last token, and its log-probability may put another hypothesis of a beam first; the others are
cut there.

*Realistic lengths*: sources of {SHORTEST} to {LONGEST} tokens, and translations of {SHORTEST} to {LONGEST}, at most 8 away from
their source (uniform, drawn once; batches of 1 are {FEWEST_SENTENCES} sentences, one after the other). The model itself ends
each translation at its drawn length: its weights are random but for a few dimensions by which every source word says how long
the translation is to be, and which make the end certain at that place and impossible before (`benchmarks/decoding/weights.py`).
So nobody is told a length, every hypothesis of a sentence ends at the same step, and all stopping rules (ours: until no better
hypothesis is possible; CTranslate2 and Marian: at as many ends as there are beams) stop there. The limit, {LIMIT} tokens, is
never reached. "Mean tokens" are what each contender really wrote for a sentence, "steps" the longest translation of a batch.
CTranslate2 in int8 takes no part here: with rounded weights, hardly any of these translations ends before the limit.

keras-hub has no such model: its BART of the same shape has two normalizations more, GELU and weights of its own. It goes on
until the last sentence of a batch has ended, and takes part at equal lengths and in batches of at most 32, to save time. Its
beam search has neither finished hypotheses nor a length penalty: it does less than the others.

*Products with weights alone* is no translator. It multiplies as many rows as a translation has by the same kernels, with torch
(all threads on one product, or a thread for each part of the batch, whichever is faster), and does nothing else: no attention,
no normalization, no softmax, no choice of tokens. Who is nearly as fast as that has nothing left to save but products.

Memory is the most that a process had up to the job, starting with small batches, with its libraries, weights and compiled
programs. A job whose first run takes very long is not repeated."""
