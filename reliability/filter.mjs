// Compares whereField with JSON.parse on random documents: hostile spacing, escapes, nesting, repeated names, damaged bytes and every truncation.
//
//   npm run reliability -- filter                            a million documents, a new seed
//   npm run reliability -- filter --documents N --seed S     N documents, a known seed
import { compareWithParse } from '../test/operators/field-documents.ts';
import { atLeast, exactly, report } from './lib/report.mjs';
import { readOptions } from './lib/options.mjs';

/** A comparison uses the same paths and values for its documents. */
const DOCUMENTS_EACH = 10_000;

const defaults = { documents: 1_000_000, seed: Date.now() % 1_000_000 };
const { documents, seed } = readOptions(defaults, { least: { documents: 1 } });

// Most truncations make JSON.parse throw, and a stack with source maps takes long.
Error.stackTraceLimit = 0;
const startedMs = performance.now();
const total = { documents: 0, valid: 0, matching: 0, cuts: 0, differences: 0 };
for (let run = 0; total.documents < documents; run += 1) {
  const count = Math.min(DOCUMENTS_EACH, documents - total.documents);
  const { differences, ...counts } = compareWithParse(count, seed + run);
  for (const difference of differences) console.log(`✗ ${difference}`);
  for (const name of ['documents', 'valid', 'matching', 'cuts']) total[name] += counts[name];
  total.differences += differences.length;
  if (differences.length > 0) break;
}

report({
  name: 'filter',
  command: `npm run reliability -- filter --documents ${documents} --seed ${seed}`,
  goals: [
    exactly('documents that whereField and JSON.parse read differently, or that make it throw', total.differences, 0),
    atLeast('share of valid documents that match', total.matching / total.valid, 0.1),
  ],
  facts: {
    documents: total.documents,
    'valid documents and truncations': total.valid,
    'of these with an accepted value': total.matching,
    truncations: total.cuts,
    seconds: Math.round((performance.now() - startedMs) / 1_000),
  },
  keep: documents >= defaults.documents,
});
