import type { metrics, trace } from '@opentelemetry/api';

/** The part of `@opentelemetry/api` that is used here. */
interface TelemetryApi {
  readonly metrics: Pick<typeof metrics, 'getMeter'>;
  readonly trace: Pick<typeof trace, 'getTracer'>;
}

/**
 * Loads the optional package. This file is CommonJS, because a constructor cannot wait for `import()`, and
 * `createRequire` needs `import.meta`, which is a syntax error in programs that are tested as CommonJS. The globals of
 * the API are the same for `require` and `import`.
 *
 * @throws Error when the package is not installed
 */
const loadTelemetry = (): TelemetryApi => require('@opentelemetry/api') as TelemetryApi;

// @ts-expect-error -- Only `export =` keeps the type in a CommonJS module; tsc, swc and esbuild compile it.
export = loadTelemetry;
