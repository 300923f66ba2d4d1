import { PassThrough } from 'node:stream';
import { Subject } from 'rxjs';
import type { CliContext, Interrupt } from '../../../src/cli/context.js';
import { FakeOutput } from './fake-output.js';

/** A context whose streams are kept and whose signals are ours. */
export interface FakeContext extends CliContext {
  readonly stdin: PassThrough;
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  readonly interrupt$: Subject<Interrupt>;
}

/** Makes a context without terminals and with an empty environment, but for what is given. */
export const fakeContext = (given: Partial<Pick<FakeContext, 'env' | 'stdout' | 'stderr'>> = {}): FakeContext => ({
  env: {},
  stdin: new PassThrough(),
  stdout: new FakeOutput(),
  stderr: new FakeOutput(),
  interrupt$: new Subject(),
  ...given,
});
