import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Entry {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Lockfile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, Entry>>;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const read = (path: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8')) as unknown;

const entriesOf = ({ packages }: Lockfile) => Object.entries(packages).filter(([path]) => path !== '');

/** Returns the error in the source or the hash of an entry. */
const problemOf = ([path, { integrity, resolved, link }]: [string, Entry]): string | undefined => {
  if (link) return `${path} is a link`;
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) return `${path} has no sha512`;
  // Without an address it comes from the registry of the installer's configuration.
  return resolved !== undefined && !resolved.startsWith('https://') ? `${path} does not come over https` : undefined;
};

const lockfiles = [
  '',
  'examples/nestjs-angular/',
  'reliability/mutation/',
  'test/apps/angular-20/',
  'test/apps/angular-22/',
  'test/apps/bundlers/',
  'test/apps/typescript/',
];

describe.each(lockfiles.map((folder) => `${folder}package-lock.json`))('%s', (file) => {
  const lockfile = read(file) as Lockfile;

  it('is of version 3, has a hash for every package, and downloads over https only', () => {
    expect(lockfile.lockfileVersion).toBe(3);
    expect(entriesOf(lockfile).length).toBeGreaterThan(5);
    // The app has this package itself as a separate tarball, or from the registry.
    const own = ([path]: [string, Entry]) => path === 'node_modules/rx-trade-feed';
    const others = entriesOf(lockfile).filter((entry) => !own(entry));
    expect(others.flatMap((entry) => problemOf(entry) ?? [])).toEqual([]);
  });
});

describe('the installation of a user', () => {
  const lockfile = read('package-lock.json') as Lockfile;
  const manifest = read('package.json') as Manifest;
  const installed = entriesOf(lockfile).filter(([, { dev, devOptional }]) => !dev && !devOptional);

  it('runs no install script: neither of this package nor of a dependency', () => {
    expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(manifest.scripts).filter((name) => hooks.includes(name))).toEqual([]);
  });

  it('has seven packages, one of them with five dependencies of one maintainer', () => {
    const names = ['@standard-schema/spec', 'commander', 'fp-ts', 'fs-native-extensions', 'io-ts', 'undici', 'ws'];
    // They find the binary of fs-native-extensions for the system.
    const further = ['bare-addon-resolve', 'bare-module-resolve', 'bare-semver', 'require-addon', 'which-runtime'];
    expect(Object.keys(manifest.dependencies)).toEqual(names);
    expect(installed.map(([path]) => path)).toEqual(
      [...names, ...further].sort().map((name) => `node_modules/${name}`),
    );
    const ownDependencies = installed.flatMap(([path, { dependencies = {} }]) =>
      path === 'node_modules/fs-native-extensions' || !names.some((name) => path === `node_modules/${name}`)
        ? []
        : Object.keys(dependencies),
    );
    expect(ownDependencies).toEqual([]);
  });

  it('has the command, the built files, the guides, the README and the license, each named in the list', () => {
    const allowed = /^(?:bin|dist|README\.md|LICENSE|!?docs\/.*)$/;
    expect(manifest.files.filter((pattern) => !allowed.test(pattern))).toEqual([]);
  });
});
