/* A python.exe for tests under Wine: it runs the python311.dll beside it, or beside the interpreter that the file
   ..\pyvenv.cfg of a virtual environment names. */
#include <windows.h>
#include <stdio.h>
#include <wchar.h>

typedef int (*main_of_python)(int, wchar_t **);

static HMODULE load(const wchar_t *folder) {
    wchar_t path[1024];
    swprintf(path, 1024, L"%ls\\python311.dll", folder);
    return LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

static HMODULE of_environment(const wchar_t *folder) {
    wchar_t path[1024], home[1024];
    char line[2048];
    HMODULE found = NULL;
    swprintf(path, 1024, L"%ls\\..\\pyvenv.cfg", folder);
    FILE *file = _wfopen(path, L"r");
    while (file && !found && fgets(line, sizeof line, file))
        if (!strncmp(line, "home = ", 7)) {
            line[strcspn(line, "\r\n")] = 0;
            if (MultiByteToWideChar(CP_UTF8, 0, line + 7, -1, home, 1024)) found = load(home);
        }
    if (file) fclose(file);
    return found;
}

int wmain(int count, wchar_t **arguments) {
    wchar_t folder[1024], *name;
    GetModuleFileNameW(NULL, folder, 1024);
    if ((name = wcsrchr(folder, L'\\'))) *name = 0;
    HMODULE python = load(folder);
    if (!python) python = of_environment(folder);
    if (!python) {
        fprintf(stderr, "there is no python311.dll: error %lu\n", GetLastError());
        return 127;
    }
    main_of_python run = (main_of_python)(void *)GetProcAddress(python, "Py_Main");
    return run ? run(count, arguments) : 126;
}
