import type { Feed, Ticket, TradeFeedOptions } from '../../index.js';
import type { DoctorCommand } from '../arguments/parsed-command.js';
import type { CliContext } from '../context.js';
import type { ExitCode } from '../exit-code.js';
import type { StreamProbe } from './stream-probe.js';

/** What a check found. */
export interface Finding {
  /** `warning`: the feed works, but something needs attention. `failed`: the feed cannot work, and later checks are skipped. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What is the case. */
  readonly text: string;
  /** What to do. */
  readonly advice?: string | undefined;
  /** The exit code of the command, for `failed`. */
  readonly exitCode?: ExitCode;
}

/** The input of a check: the command, and the facts of earlier checks. */
export interface Facts {
  readonly feed: Feed;
  readonly command: DoctorCommand['options'];
  readonly context: Pick<CliContext, 'env'>;
  /** The valid options of the feed. */
  readonly options?: TradeFeedOptions;
  /** The address of the service. */
  readonly url?: URL;
  /** The proxy for this address. */
  readonly proxy?: URL | undefined;
  /** The IP addresses of the host that is connected to: the service, or the proxy. */
  readonly addresses?: readonly string[];
  /** The difference between the clock of this machine and that of the service, in ms. */
  readonly clockSkewMs?: number | undefined;
  readonly ticket?: Ticket;
  readonly stream?: StreamProbe;
}

/** The result of a check: what it found, and new facts for later checks. */
export interface Checked extends Finding {
  readonly facts?: Partial<Facts>;
}

/** A check of `doctor`. */
export interface Check {
  readonly name: string;
  readonly run: (facts: Facts) => Checked | Promise<Checked>;
}

/** Creates the result of a check without a problem. */
export const ok = (text: string, facts: Partial<Facts> = {}): Checked => ({ status: 'ok', text, facts });

/** Creates the result of a check that does not apply. */
export const skipped = (text: string, facts: Partial<Facts> = {}): Checked => ({ status: 'skipped', text, facts });

/** Creates the result of a check with a problem that does not stop the feed. */
export const warning = (text: string, advice: string): Checked => ({ status: 'warning', text, advice });

/** Creates the result of a check with a problem that stops the feed. */
export const failed = (exitCode: ExitCode, text: string, advice?: string): Checked => ({
  status: 'failed',
  text,
  advice,
  exitCode,
});
