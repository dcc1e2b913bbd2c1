
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'gwctl' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'gwctl'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'gwctl' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('quickstart', 'quickstart', [CompletionResultType]::ParameterValue, 'Run a whole cluster with traffic in this terminal')
            [CompletionResult]::new('demo-upstream', 'demo-upstream', [CompletionResultType]::ParameterValue, 'The upstream of the quickstart')
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start a node in the role its settings say (traditional, control_plane or data_plane)')
            [CompletionResult]::new('reload', 'reload', [CompletionResultType]::ParameterValue, 'Let a running node read its settings and certificates again (SIGHUP)')
            [CompletionResult]::new('upgrade', 'upgrade', [CompletionResultType]::ParameterValue, 'Let the program on disk take over from a running node, without a lost connection (SIGUSR2)')
            [CompletionResult]::new('quit', 'quit', [CompletionResultType]::ParameterValue, 'Stop a node once what is in flight has ended, within shutdown_grace (SIGQUIT)')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop a node soon, within shutdown_fast_grace (SIGTERM)')
            [CompletionResult]::new('cp', 'cp', [CompletionResultType]::ParameterValue, 'Control planes')
            [CompletionResult]::new('dp', 'dp', [CompletionResultType]::ParameterValue, 'Data planes')
            [CompletionResult]::new('certs', 'certs', [CompletionResultType]::ParameterValue, 'Certificates of a cluster')
            [CompletionResult]::new('apply', 'apply', [CompletionResultType]::ParameterValue, 'Bring the configuration of a control plane to what files say')
            [CompletionResult]::new('diff', 'diff', [CompletionResultType]::ParameterValue, 'Show what `apply` would do')
            [CompletionResult]::new('history', 'history', [CompletionResultType]::ParameterValue, 'List the versions of the configuration: when, who, how much; or show what one did')
            [CompletionResult]::new('rollback', 'rollback', [CompletionResultType]::ParameterValue, 'Make the configuration what it was at a version')
            [CompletionResult]::new('validate', 'validate', [CompletionResultType]::ParameterValue, 'Find the mistakes of declarative files, with line and column')
            [CompletionResult]::new('dump', 'dump', [CompletionResultType]::ParameterValue, 'Write what is configured as a declarative file')
            [CompletionResult]::new('convert', 'convert', [CompletionResultType]::ParameterValue, 'Turn files of Kong and of decK into each other')
            [CompletionResult]::new('get', 'get', [CompletionResultType]::ParameterValue, 'List or show what is configured')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'Tell which route answers a request, and why the others do not')
            [CompletionResult]::new('top', 'top', [CompletionResultType]::ParameterValue, 'Watch the fleet in the terminal')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Settings of a node')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Write the man pages into a folder')
            [CompletionResult]::new('version', 'version', [CompletionResultType]::ParameterValue, 'Print version and build facts')
            [CompletionResult]::new('exit-codes', 'exit-codes', [CompletionResultType]::ParameterValue, 'The codes that commands end with')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;quickstart' {
            [CompletionResult]::new('--dir', '--dir', [CompletionResultType]::ParameterName, 'Folder of the cluster; a fresh one below the user''s state folder when not given, removed after a clean end')
            [CompletionResult]::new('--exit-after', '--exit-after', [CompletionResultType]::ParameterName, 'Stop by itself after so many seconds')
            [CompletionResult]::new('--keep', '--keep', [CompletionResultType]::ParameterName, 'Keep the fresh folder too')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;demo-upstream' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;start' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;reload' {
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Seconds to wait for the node')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;upgrade' {
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Seconds to wait for the node')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;quit' {
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Seconds to wait for the node')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;stop' {
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Seconds to wait for the node')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;cp' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start a control plane: store, Admin API and cluster listener')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;cp;start' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;cp;help' {
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start a control plane: store, Admin API and cluster listener')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;cp;help;start' {
            break
        }
        'gwctl;cp;help;help' {
            break
        }
        'gwctl;dp' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('join', 'join', [CompletionResultType]::ParameterValue, 'Start a data plane that joins a control plane')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the data planes of a control plane: state, version, configuration, lag')
            [CompletionResult]::new('describe', 'describe', [CompletionResultType]::ParameterValue, 'Show everything a control plane knows of one data plane')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;dp;join' {
            [CompletionResult]::new('--cluster-cert', '--cluster-cert', [CompletionResultType]::ParameterName, 'Cluster certificate (cluster_cert)')
            [CompletionResult]::new('--cluster-key', '--cluster-key', [CompletionResultType]::ParameterName, 'Its key (cluster_cert_key)')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Label of this data plane (cluster_dp_labels), may be repeated')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;dp;list' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;dp;describe' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;dp;help' {
            [CompletionResult]::new('join', 'join', [CompletionResultType]::ParameterValue, 'Start a data plane that joins a control plane')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the data planes of a control plane: state, version, configuration, lag')
            [CompletionResult]::new('describe', 'describe', [CompletionResultType]::ParameterValue, 'Show everything a control plane knows of one data plane')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;dp;help;join' {
            break
        }
        'gwctl;dp;help;list' {
            break
        }
        'gwctl;dp;help;describe' {
            break
        }
        'gwctl;dp;help;help' {
            break
        }
        'gwctl;certs' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Make the certificates of a cluster')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what a certificate says')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;certs;init' {
            [CompletionResult]::new('--dir', '--dir', [CompletionResultType]::ParameterName, 'Folder to write into; made when missing')
            [CompletionResult]::new('--days', '--days', [CompletionResultType]::ParameterName, 'Days the certificates are valid')
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Host name or address of the control plane, may be repeated; with --pki')
            [CompletionResult]::new('--pki', '--pki', [CompletionResultType]::ParameterName, 'An authority that issues one certificate to the control plane and one to data planes (cluster_mtls = pki)')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace files that are there')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;certs;show' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;certs;help' {
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Make the certificates of a cluster')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what a certificate says')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;certs;help;init' {
            break
        }
        'gwctl;certs;help;show' {
            break
        }
        'gwctl;certs;help;help' {
            break
        }
        'gwctl;apply' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--select-tag', '--select-tag', [CompletionResultType]::ParameterName, 'Only delete records with this tag, and give it to those of the files; may be repeated')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'Wait until all connected data planes have it, or so many of a hundred (80%); up to --timeout, 60s when not given')
            [CompletionResult]::new('--prune', '--prune', [CompletionResultType]::ParameterName, 'Delete what the files do not have')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Print what would be done and do nothing; exit code 2 when there is something to do')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask before records are deleted')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask before records are deleted')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;diff' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--select-tag', '--select-tag', [CompletionResultType]::ParameterName, 'Only delete records with this tag, and give it to those of the files; may be repeated')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--prune', '--prune', [CompletionResultType]::ParameterName, 'Delete what the files do not have')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;history' {
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Versions to list')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;rollback' {
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'Wait until all connected data planes have it, or so many of a hundred (80%); up to --timeout, 60s when not given')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Print what would be done and do nothing; exit code 2 when there is something to do')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;validate' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--partial', '--partial', [CompletionResultType]::ParameterName, 'References may lead to records that the files do not have')
            [CompletionResult]::new('--online', '--online', [CompletionResultType]::ParameterName, 'Ask a control plane too, one request an entity')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;dump' {
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'Address of the Admin API of a gwctl or Kong; the same as --addr')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Dialect of the file')
            [CompletionResult]::new('--select-tag', '--select-tag', [CompletionResultType]::ParameterName, 'Only records with this tag; several must all be there')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'Write to this file, readable by its owner only, rather than to stdout')
            [CompletionResult]::new('--write', '--write', [CompletionResultType]::ParameterName, 'Write to this file, readable by its owner only, rather than to stdout')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--defaults', '--defaults', [CompletionResultType]::ParameterName, 'Write fields that stand at their default too')
            [CompletionResult]::new('--no-ids', '--no-ids', [CompletionResultType]::ParameterName, 'Leave ids out where names and places say enough')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace the file when it is there')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;convert' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated')
            [CompletionResult]::new('--to', '--to', [CompletionResultType]::ParameterName, 'Dialect to write')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'Write to this file, readable by its owner only, rather than to stdout')
            [CompletionResult]::new('--write', '--write', [CompletionResultType]::ParameterName, 'Write to this file, readable by its owner only, rather than to stdout')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace the file when it is there')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;get' {
            [CompletionResult]::new('--of', '--of', [CompletionResultType]::ParameterName, 'Only what hangs below this record')
            [CompletionResult]::new('--tag', '--tag', [CompletionResultType]::ParameterName, 'Only records that carry this tag; several must all be there')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;explain' {
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Host of the request, with its port if it has one; that of the URL when not given')
            [CompletionResult]::new('-H', '-H ', [CompletionResultType]::ParameterName, 'Header of the request, may be repeated')
            [CompletionResult]::new('--header', '--header', [CompletionResultType]::ParameterName, 'Header of the request, may be repeated')
            [CompletionResult]::new('--sni', '--sni', [CompletionResultType]::ParameterName, 'Server name of the TLS handshake; the host of an https URL when not given')
            [CompletionResult]::new('--source', '--source', [CompletionResultType]::ParameterName, 'Address of the client, for routes by expression')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated. The Admin API is asked when not given')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Declarative file, folder of such files, or - for stdin; may be repeated. The Admin API is asked when not given')
            [CompletionResult]::new('--flavor', '--flavor', [CompletionResultType]::ParameterName, 'How the routes of files are read (router_flavor); a control plane tells its own')
            [CompletionResult]::new('--expect', '--expect', [CompletionResultType]::ParameterName, 'Name or id of the route that must answer; exit code 6 when it does not')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Show every route, however many there are')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;top' {
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks')
            [CompletionResult]::new('--note', '--note', [CompletionResultType]::ParameterName, 'A line above the keys, for whoever starts it as a child')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--addr', '--addr', [CompletionResultType]::ParameterName, 'Address of the Admin API')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself')
            [CompletionResult]::new('--cacert', '--cacert', [CompletionResultType]::ParameterName, 'PEM file of authorities to trust, for https')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Limit of each request: 500ms, 10s, 2m; 10s when not given')
            [CompletionResult]::new('--once', '--once', [CompletionResultType]::ParameterName, 'Print one frame and end; so it is wherever there is no terminal')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Only ASCII characters')
            [CompletionResult]::new('--insecure', '--insecure', [CompletionResultType]::ParameterName, 'Trust any certificate of https')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;config' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print every effective setting')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;config;show' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('--conf', '--conf', [CompletionResultType]::ParameterName, 'Settings file in the form of kong.conf')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--prefix', '--prefix', [CompletionResultType]::ParameterName, 'Folder of the node: store, cache, node id')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting by its key in kong.conf, may be repeated')
            [CompletionResult]::new('--origin', '--origin', [CompletionResultType]::ParameterName, 'Also print where each value comes from')
            [CompletionResult]::new('--changed', '--changed', [CompletionResultType]::ParameterName, 'Only settings that do not stand at their default')
            [CompletionResult]::new('--until-stdin-ends', '--until-stdin-ends', [CompletionResultType]::ParameterName, 'Stop when standard input ends, for whoever starts the node as a child')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;config;help' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print every effective setting')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;config;help;show' {
            break
        }
        'gwctl;config;help;help' {
            break
        }
        'gwctl;completions' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;man' {
            [CompletionResult]::new('--dir', '--dir', [CompletionResultType]::ParameterName, 'Folder to write into; made when missing')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gwctl;version' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Form of the output')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;exit-codes' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gwctl;help' {
            [CompletionResult]::new('quickstart', 'quickstart', [CompletionResultType]::ParameterValue, 'Run a whole cluster with traffic in this terminal')
            [CompletionResult]::new('demo-upstream', 'demo-upstream', [CompletionResultType]::ParameterValue, 'The upstream of the quickstart')
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start a node in the role its settings say (traditional, control_plane or data_plane)')
            [CompletionResult]::new('reload', 'reload', [CompletionResultType]::ParameterValue, 'Let a running node read its settings and certificates again (SIGHUP)')
            [CompletionResult]::new('upgrade', 'upgrade', [CompletionResultType]::ParameterValue, 'Let the program on disk take over from a running node, without a lost connection (SIGUSR2)')
            [CompletionResult]::new('quit', 'quit', [CompletionResultType]::ParameterValue, 'Stop a node once what is in flight has ended, within shutdown_grace (SIGQUIT)')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop a node soon, within shutdown_fast_grace (SIGTERM)')
            [CompletionResult]::new('cp', 'cp', [CompletionResultType]::ParameterValue, 'Control planes')
            [CompletionResult]::new('dp', 'dp', [CompletionResultType]::ParameterValue, 'Data planes')
            [CompletionResult]::new('certs', 'certs', [CompletionResultType]::ParameterValue, 'Certificates of a cluster')
            [CompletionResult]::new('apply', 'apply', [CompletionResultType]::ParameterValue, 'Bring the configuration of a control plane to what files say')
            [CompletionResult]::new('diff', 'diff', [CompletionResultType]::ParameterValue, 'Show what `apply` would do')
            [CompletionResult]::new('history', 'history', [CompletionResultType]::ParameterValue, 'List the versions of the configuration: when, who, how much; or show what one did')
            [CompletionResult]::new('rollback', 'rollback', [CompletionResultType]::ParameterValue, 'Make the configuration what it was at a version')
            [CompletionResult]::new('validate', 'validate', [CompletionResultType]::ParameterValue, 'Find the mistakes of declarative files, with line and column')
            [CompletionResult]::new('dump', 'dump', [CompletionResultType]::ParameterValue, 'Write what is configured as a declarative file')
            [CompletionResult]::new('convert', 'convert', [CompletionResultType]::ParameterValue, 'Turn files of Kong and of decK into each other')
            [CompletionResult]::new('get', 'get', [CompletionResultType]::ParameterValue, 'List or show what is configured')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'Tell which route answers a request, and why the others do not')
            [CompletionResult]::new('top', 'top', [CompletionResultType]::ParameterValue, 'Watch the fleet in the terminal')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Settings of a node')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Write the man pages into a folder')
            [CompletionResult]::new('version', 'version', [CompletionResultType]::ParameterValue, 'Print version and build facts')
            [CompletionResult]::new('exit-codes', 'exit-codes', [CompletionResultType]::ParameterValue, 'The codes that commands end with')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'gwctl;help;quickstart' {
            break
        }
        'gwctl;help;demo-upstream' {
            break
        }
        'gwctl;help;start' {
            break
        }
        'gwctl;help;reload' {
            break
        }
        'gwctl;help;upgrade' {
            break
        }
        'gwctl;help;quit' {
            break
        }
        'gwctl;help;stop' {
            break
        }
        'gwctl;help;cp' {
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start a control plane: store, Admin API and cluster listener')
            break
        }
        'gwctl;help;cp;start' {
            break
        }
        'gwctl;help;dp' {
            [CompletionResult]::new('join', 'join', [CompletionResultType]::ParameterValue, 'Start a data plane that joins a control plane')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the data planes of a control plane: state, version, configuration, lag')
            [CompletionResult]::new('describe', 'describe', [CompletionResultType]::ParameterValue, 'Show everything a control plane knows of one data plane')
            break
        }
        'gwctl;help;dp;join' {
            break
        }
        'gwctl;help;dp;list' {
            break
        }
        'gwctl;help;dp;describe' {
            break
        }
        'gwctl;help;certs' {
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Make the certificates of a cluster')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print what a certificate says')
            break
        }
        'gwctl;help;certs;init' {
            break
        }
        'gwctl;help;certs;show' {
            break
        }
        'gwctl;help;apply' {
            break
        }
        'gwctl;help;diff' {
            break
        }
        'gwctl;help;history' {
            break
        }
        'gwctl;help;rollback' {
            break
        }
        'gwctl;help;validate' {
            break
        }
        'gwctl;help;dump' {
            break
        }
        'gwctl;help;convert' {
            break
        }
        'gwctl;help;get' {
            break
        }
        'gwctl;help;explain' {
            break
        }
        'gwctl;help;top' {
            break
        }
        'gwctl;help;config' {
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print every effective setting')
            break
        }
        'gwctl;help;config;show' {
            break
        }
        'gwctl;help;completions' {
            break
        }
        'gwctl;help;man' {
            break
        }
        'gwctl;help;version' {
            break
        }
        'gwctl;help;exit-codes' {
            break
        }
        'gwctl;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
