import { parse } from '../../../src/cli/program.js';

/** Returns the text of `--help`: of one command, or of the program. */
export const helpText = async (command?: string): Promise<string> => {
  const parsed = await parse(command === undefined ? ['--help'] : [command, '--help']);
  return 'text' in parsed ? parsed.text : '';
};
