import { PassThrough } from 'node:stream';
import { Subject } from 'rxjs';
import type { CliContext, Interrupt } from '../../../src/cli/context.js';
import { FakeOutput } from './fake-output.js';

/** A context with fake streams and signals. */
export interface FakeContext extends CliContext {
  readonly stdin: PassThrough;
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  readonly interrupt$: Subject<Interrupt>;
}

/** Creates a context without terminals and with an empty environment by default. */
export const fakeContext = (
  given: Partial<Pick<FakeContext, 'env' | 'stdin' | 'stdout' | 'stderr'>> = {},
): FakeContext => ({
  env: {},
  stdin: new PassThrough(),
  stdout: new FakeOutput(),
  stderr: new FakeOutput(),
  interrupt$: new Subject(),
  ...given,
});
