import type { DoctorCommand } from '../arguments/parsed-command.js';
import { type CliContext, hasColors } from '../context.js';
import { type Check, type Facts, skipped } from '../doctor/check.js';
import { localChecks } from '../doctor/local-checks.js';
import { networkChecks } from '../doctor/network-checks.js';
import { conclusion, findingLines, type NamedFinding } from '../doctor/report.js';
import { serviceChecks } from '../doctor/service-checks.js';
import { ExitCode } from '../exit-code.js';

/** All checks, in order. Each needs that the checks before it did not fail. */
const checks: readonly Check[] = [...localChecks, ...networkChecks, ...serviceChecks];

/**
 * Checks everything that a feed needs, and prints each problem with what to do.
 *
 * @returns the exit code: 0 if no check failed
 */
export const doctor = async ({ feed, options }: DoctorCommand, context: CliContext): Promise<number> => {
  const { stdout } = context;
  const colors = hasColors(stdout, context);
  const findings: NamedFinding[] = [];
  let facts: Facts = { feed, command: options, context };
  try {
    for (const check of checks) {
      const failure = findings.find(({ status }) => status === 'failed');
      const { facts: found, ...finding } = await (failure
        ? skipped(`after the failure of ${failure.name}`)
        : check.run(facts));
      facts = { ...facts, ...found };
      const named = { name: check.name, ...finding };
      findings.push(named);
      if (!options.json && !failure) stdout.write(`${findingLines(named, colors).join('\n')}\n`);
    }
  } finally {
    facts.stream?.close();
  }
  const exitCode = findings.find(({ status }) => status === 'failed')?.exitCode ?? ExitCode.ok;
  const report = { baseUrl: facts.url?.href, feed, exitCode, checks: findings.map(({ exitCode: _, ...rest }) => rest) };
  stdout.write(options.json ? `${JSON.stringify(report)}\n` : `${conclusion(findings)}\n`);
  return exitCode;
};
