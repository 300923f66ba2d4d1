import { readFile, stat } from 'node:fs/promises';
import { CliError, localError, usageError } from '../cli-error.js';

/**
 * Reads the API key from a file. A regular file is read again for every ticket, so that the key can rotate; a pipe
 * (`--key-file <(pass show …)`) gives its text once.
 *
 * @throws CliError when the file cannot be read or holds no key; the message never shows what it holds
 */
export const keyFromFile = async (file: string): Promise<string | (() => Promise<string>)> => {
  try {
    const isRegular = (await stat(file)).isFile();
    const key = await readKey(file);
    return isRegular ? () => readKey(file) : key;
  } catch (error) {
    throw error instanceof CliError ? error : localError('Cannot read the file of --key-file', error);
  }
};

// A file that is being written may be empty for a moment: what is thrown for a later ticket is retried, as an outage is.
const readKey = async (file: string): Promise<string> => {
  const key = (await readFile(file, 'utf8')).replace(/[\r\n]+$/, '');
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw usageError(
    'The file of --key-file must hold an API key and nothing else: one line of visible ASCII characters.',
  );
};
