import { expect, it } from '@jest/globals';
import { RecordingError, toRecordingError } from '../../../../src/operators/node/recording/recording-error.js';

it('has no property for an undefined field', () => {
  const error = new RecordingError('words', { path: 'f' });
  expect(['cause' in error, 'lineAt' in error]).toEqual([false, false]);
  const cause = new Error('below');
  expect(new RecordingError('words', { path: 'f', lineAt: 0, cause })).toMatchObject({ path: 'f', lineAt: 0, cause });
});

it.each([
  [Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' }), 'there is no such file or folder'],
  [Object.assign(new Error('strange'), { code: 'ESTRANGE' }), 'strange'],
  [new Error('the path is not a file'), 'the path is not a file'],
])('explains an error of the file system: %p', (cause, words) => {
  const error = toRecordingError('read', 'a/b', cause);
  expect(error.message).toBe(`Cannot read the recording a/b: ${words}.`);
  expect(error.cause).toBe(cause);
  expect(toRecordingError('write', 'c', error)).toBe(error);
});
