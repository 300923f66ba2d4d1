import type { metrics, trace } from '@opentelemetry/api';

/** What the module uses of `@opentelemetry/api`. */
interface TelemetryApi {
  readonly metrics: Pick<typeof metrics, 'getMeter'>;
  readonly trace: Pick<typeof trace, 'getTracer'>;
}

/**
 * Loads the optional package. This file is CommonJS because a constructor can't wait for `import()`, and
 * `createRequire` needs `import.meta`, a syntax error in programs that run their tests as CommonJS. `require` and
 * `import` get the same globals of the API.
 *
 * @throws Error when the package isn't installed
 */
const loadTelemetry = (): TelemetryApi => require('@opentelemetry/api') as TelemetryApi;

// @ts-expect-error -- Only `export =` keeps the type in a CommonJS module; tsc, swc and esbuild compile it.
export = loadTelemetry;
