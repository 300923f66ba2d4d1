interface NativeLock {
  /** `false` when another descriptor has the lock. Throws when the file system does not support locks. */
  readonly tryLock: (fd: number, offset: number, length: number) => boolean;
}

/**
 * Loads the native package, or throws without one for this system. CommonJS, because `require` loads it synchronously
 * and only when a recording begins; `createRequire` needs `import.meta`, a syntax error where bundled as CommonJS.
 */
const loadNativeLock = (): NativeLock => require('fs-native-extensions') as NativeLock;

// @ts-expect-error -- Only `export =` keeps the type in a CommonJS module; tsc, swc and esbuild compile it.
export = loadNativeLock;
