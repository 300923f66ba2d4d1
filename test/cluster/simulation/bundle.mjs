import { bundled as bundledProgram } from '../../support/bundle.mjs';

/**
 * Bundles a program of this folder, and imports it.
 *
 * @param {string} file - its name
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [mutant] - a change of one file in `src/cluster/`
 */
export const bundled = (file, mutant) =>
  bundledProgram(new URL(file, import.meta.url), mutant && { mutant: { ...mutant, file: `cluster/${mutant.file}` } });
